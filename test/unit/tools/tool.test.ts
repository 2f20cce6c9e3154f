import { type } from 'arktype'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { defineTool, type ToolOptions, toolResponse } from '../../../src/tools/index.ts'

const sound: ToolOptions = { name: 'f', description: 'F', input: { type: 'object' }, execute: () => 1 }

test('a tool has the given options, and strict defaults for the others', () => {
  expect(defineTool(sound)).toEqual({
    name: 'f',
    description: 'F',
    input: { type: 'object' },
    output: undefined,
    effect: 'write',
    secrets: [],
    timeoutMs: undefined,
    maxCalls: undefined,
    concurrency: undefined,
    execute: expect.any(Function) as unknown,
  })
})

test('the argument of execute has the type of the schema', () => {
  const execute = (): null => null
  defineTool({
    name: 'zod',
    description: '',
    input: z.object({ a: z.string().transform(Number), b: z.int().default(1) }),
    execute(input, { signal, callId, executionId }) {
      expectTypeOf(input).toEqualTypeOf<{ a: number; b: number }>()
      expectTypeOf([callId, executionId]).toEqualTypeOf<string[]>()
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
    },
  })
  defineTool({
    name: 'arktype',
    description: '',
    input: type({ a: 'string', 'b?': 'number' }),
    execute: (input) => expectTypeOf(input).toEqualTypeOf<{ a: string; b?: number }>(),
  })
  defineTool({
    name: 'json',
    description: '',
    input: { type: 'object', properties: { a: { type: 'string' } } },
    execute: (input) => expectTypeOf(input).toEqualTypeOf<Readonly<Record<string, unknown>>>(),
  })
  expect(execute()).toBe(null)
})

test('the result of execute has the type that the output schema accepts', () => {
  const shared = { name: 'typed', description: '', input: z.object({}) }
  const output = z.object({ total: z.string().transform(Number) })
  defineTool({ ...shared, output, execute: () => ({ total: '5' }) })
  const tool = defineTool({ ...shared, output, execute: async () => ({ total: '5' }) })
  defineTool({ ...shared, output: type({ total: 'number' }), execute: () => ({ total: 5 }) })
  defineTool({ ...shared, output: { type: 'object' }, execute: () => 'anything' })
  defineTool({ ...shared, execute: () => undefined })
  // @ts-expect-error -- the schema takes text
  defineTool({ ...shared, output, execute: () => ({ total: 5 }) })
  // @ts-expect-error -- `total` is missing
  defineTool({ ...shared, output: type({ total: 'number' }), execute: async () => ({}) })
  expectTypeOf<ReturnType<ToolOptions['execute']>>().toEqualTypeOf<unknown>()
  expect(tool.output).toBe(output)
})

describe('names the option and the tool on wrong use', () => {
  test.each<[Record<string, unknown>, string]>([
    [{ name: 5 }, 'defineTool: name must be a string, not number'],
    [{ description: undefined }, 'defineTool "f": description must be a string, not undefined'],
    [{ inputs: {} }, 'defineTool "f": unknown option "inputs". Did you mean "input"?'],
    [
      { input: undefined },
      'defineTool "f": input must be a Standard Schema (zod 4 and others) or JSON Schema, not undefined',
    ],
    [{ input: [] }, 'defineTool "f": input must be a Standard Schema (zod 4 and others) or JSON Schema, not a list'],
    [{ output: 'x' }, 'defineTool "f": output must be a Standard Schema (zod 4 and others) or JSON Schema, not string'],
    [{ effect: 'none' }, 'defineTool "f": effect must be read, idempotent or write, not "none"'],
    [
      { secrets: 'KEY' },
      'defineTool "f": secrets must be a list of names of environment variables (letters, digits and "_", no digit first)',
    ],
    [
      { secrets: ['a b'] },
      'defineTool "f": secrets must be a list of names of environment variables (letters, digits and "_", no digit first)',
    ],
    [
      { timeoutMs: 0 },
      'defineTool "f": timeoutMs must be a number of milliseconds above 0 and up to 2147483647, not 0',
    ],
    [
      { timeoutMs: Number.NaN },
      'defineTool "f": timeoutMs must be a number of milliseconds above 0 and up to 2147483647, not NaN',
    ],
    [{ maxCalls: 0.5 }, 'defineTool "f": maxCalls must be a whole number of at least 1, not 0.5'],
    [{ concurrency: 0 }, 'defineTool "f": concurrency must be a whole number of at least 1, not 0'],
    [{ execute: null }, 'defineTool "f": execute must be a function, not null'],
  ])('%j', (options, message) => {
    expect(() => defineTool({ ...sound, ...options })).toThrow(new TypeError(message))
  })
})

test('a minimal ToolResponse is a success without a message', () => {
  expect([toolResponse({ data: [1] }), toolResponse({ success: false, message: 'gone' })]).toEqual([
    { success: true, message: '', data: [1] },
    { success: false, message: 'gone', data: null },
  ])
})
