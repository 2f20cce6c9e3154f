import { DynamicTool, tool as langChainTool } from '@langchain/core/tools'
import { dynamicTool, jsonSchema, tool as aiTool, zodSchema } from 'ai'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  type PreparedTool,
  prepareTools,
  type ToolContext,
  ToolCallError,
  type ToolsInput,
} from '../../../src/tools/index.ts'

const context: ToolContext = { signal: new AbortController().signal, callId: 'call-1', executionId: 'run-1' }

function only(given: ToolsInput): PreparedTool {
  const [tool] = prepareTools(given).tools.values()
  if (tool === undefined) throw new Error('no tool')
  return tool
}

async function call(tool: PreparedTool, args: Record<string, unknown>): Promise<unknown> {
  return tool.validateOutput(await tool.execute(await tool.validateInput(args), context))
}

async function messageOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  return error instanceof ToolCallError ? `${error.code}: ${error.message}` : String(error)
}

describe('a tool set of the AI SDK', () => {
  const weather = aiTool({
    description: 'The weather in a city.',
    inputSchema: z.object({ city: z.string(), days: z.int().default(1) }),
    outputSchema: z.object({ celsius: z.number() }),
    execute: ({ city, days }, { toolCallId, abortSignal }) => ({
      celsius: city.length + days + toolCallId.length + Number(abortSignal?.aborted),
    }),
  })

  test('is taken as it is', async () => {
    const set = prepareTools({ 'get-weather': weather })
    expect(set.signatures).toEqual([
      {
        name: 'get_weather',
        params: [
          { name: 'city', type: 'str', required: true, nullable: false },
          { name: 'days', type: 'int', required: false, nullable: false, default: 1 },
        ],
        more: false,
        returns: 'GetWeatherResult',
        types: 'class GetWeatherResult(TypedDict):\n    celsius: float',
        doc: 'The weather in a city.',
      },
    ])
    const tool = only({ 'get-weather': weather })
    expect(tool.effect).toBe('write')
    expect(await call(tool, { city: 'Rome' })).toEqual({ celsius: 11 })
    expect(await messageOf(call(tool, { city: 5 }))).toBe(
      'invalid_arguments: get_weather: city: Invalid input: expected string, received number, got 5',
    )
  })

  test.each<[string, unknown]>([
    ['jsonSchema()', jsonSchema({ type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] })],
    ['zodSchema()', zodSchema(z.object({ n: z.int() }))],
    [
      'jsonSchema() with a check of its own',
      jsonSchema<{ n: number }>(
        { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
        {
          validate: (value) => {
            const parsed = z.object({ n: z.int() }).safeParse(value)
            return parsed.success
              ? { success: true, value: parsed.data }
              : { success: false, error: new Error('wrong', { cause: parsed.error }) }
          },
        },
      ),
    ],
  ])('may have a schema from %s', async (_what, inputSchema) => {
    const twice = aiTool({
      inputSchema: inputSchema as ReturnType<typeof jsonSchema<{ n: number }>>,
      execute: ({ n }: { n: number }) => n * 2,
    })
    const tool = only({ twice })
    expect(tool.signature.params).toEqual([{ name: 'n', type: 'int', required: true, nullable: false }])
    expect(await call(tool, { n: 4 })).toBe(8)
    expect(await messageOf(call(tool, { n: 'x' }))).toMatch(
      /^invalid_arguments: twice: n: .*expected (int|number|integer).*, got "x"$/,
    )
  })

  test('answers with the last yielded value', async () => {
    const count = aiTool({
      inputSchema: z.object({}),
      async *execute() {
        yield 1
        yield await Promise.resolve(2)
      },
    })
    expect(await call(only({ count }), {})).toBe(2)
  })

  test('may contain dynamic tools', async () => {
    const echo = dynamicTool({ description: 'Echo', inputSchema: z.looseObject({}), execute: (input) => input })
    expect(only({ echo }).signature.more).toBe(true)
    expect(await call(only({ echo }), { a: [1] })).toEqual({ a: [1] })
  })

  test.each<[string, unknown, string]>([
    [
      'runs elsewhere',
      { ask: aiTool({ inputSchema: z.object({}) }) },
      'tool "ask" of the AI SDK has no execute function, so a script cannot call it',
    ],
    [
      'has no name',
      [weather],
      'tools: a tool of the AI SDK takes its name from its key in the tool set; pass the set, not a list',
    ],
    [
      'has its schema later',
      { ask: aiTool({ inputSchema: jsonSchema(Promise.resolve({})), execute: () => 1 }) },
      'tool "ask" of the AI SDK has a schema that is a promise; await it first',
    ],
  ])('is refused where a tool %s', (_what, given, message) => {
    expect(() => prepareTools(given as ToolsInput)).toThrow(new TypeError(message))
  })
})

describe('a tool of LangChain', () => {
  const schema = z.object({
    a: z.number(),
    b: z.number().default(2),
    day: z.iso
      .date()
      .transform((text) => new Date(text))
      .optional(),
  })
  const multiply = langChainTool(
    ({ a, b, day }, config) => `${a * b} ${day?.getTime()} ${config.signal === context.signal}`,
    {
      name: 'multiply',
      description: 'Multiplies.',
      schema,
    },
  )

  test('is used unchanged; its own schema converts its arguments once', async () => {
    const tool = only([multiply])
    expect(tool.signature.params).toEqual([
      { name: 'a', type: 'float', required: true, nullable: false },
      { name: 'b', type: 'float', required: false, nullable: false, default: 2 },
      { name: 'day', type: 'str | None', required: false, nullable: false },
    ])
    expect(await call(tool, { a: 3, day: '1970-01-01' })).toMatch(/^6 0 /)
    expect(await messageOf(call(tool, { a: 'x' }))).toBe(
      'invalid_arguments: multiply: a: Invalid input: expected number, received string, got "x"',
    )
  })

  test('may have JSON Schema, or take a single text', async () => {
    const json = langChainTool((input: unknown) => JSON.stringify(input), {
      name: 'json',
      description: '',
      schema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
    })
    const text = new DynamicTool({
      name: 'text',
      description: '',
      func: async (input) => Promise.resolve(`<${input}>`),
    })
    expect(await call(only([json]), { a: 'x' })).toBe('{"a":"x"}')
    expect(only([text]).signature.params).toEqual([
      { name: 'input', type: 'str | None', required: false, nullable: false },
    ])
    expect(await call(only([text]), { input: 'x' })).toBe('<x>')
  })
})
