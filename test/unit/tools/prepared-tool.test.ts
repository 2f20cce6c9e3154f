import { type } from 'arktype'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  type PreparedTool,
  prepareTools,
  ToolCallError,
  type ToolSchema,
} from '../../../src/tools/index.ts'

function prepare(input: ToolSchema, output?: ToolSchema): PreparedTool {
  const made = defineTool({ name: 'find', description: '', input, output, execute: () => null })
  const [tool] = prepareTools([made]).tools.values()
  if (tool === undefined) throw new Error('no tool')
  return tool
}

/** The message that the script gets. */
async function messageOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof ToolCallError)) throw error
    return `${error.code}: ${error.message}`
  }
}

const json = {
  type: 'object',
  properties: {
    query: { type: 'string', minLength: 2 },
    limit: { type: 'integer', minimum: 1 },
    from: { type: 'string', format: 'date' },
    status: { enum: ['open', 'late'] },
    tags: { type: 'array', items: { type: 'string' } },
    filter: { anyOf: [{ type: 'null' }, { type: 'object', properties: { sku: { type: 'string', pattern: '^A' } } }] },
    either: { oneOf: [{ type: 'string' }, { type: 'integer' }] },
  },
  required: ['query'],
  additionalProperties: false,
}

describe('reports invalid arguments by their names in the script', () => {
  test.each<[Record<string, unknown>, string]>([
    [{}, 'query: is missing'],
    [{ query: 7 }, 'query: expected string, got 7'],
    [{ query: 'x' }, 'query: must NOT have fewer than 2 characters, got "x"'],
    [{ query: 'xy', limit: 'ten' }, 'limit: expected integer, got "ten"'],
    [{ query: 'xy', limit: 2.5 }, 'limit: expected integer, got 2.5'],
    [{ query: 'xy', limit: true }, 'limit: expected integer, got True'],
    [{ query: 'xy', limit: 0 }, 'limit: expected >= 1, got 0'],
    [{ query: 'xy', from: 'today' }, 'from_: expected a date, got "today"'],
    [{ query: 'xy', status: 'opne' }, 'status: expected one of "open", "late", got "opne"'],
    [{ query: 'xy', tags: ['a', null] }, 'tags[1]: expected string, got None'],
    [{ query: 'xy', tags: 'a' }, 'tags: expected array, got "a"'],
    [{ query: 'xy', filter: { sku: 'B' } }, 'filter.sku: expected text that matches ^A, got "B"'],
    [{ query: 'xy', filter: 3 }, 'filter: expected null or object, got 3'],
    [{ query: 'xy', either: [] }, 'either: expected string or integer, got []'],
    [{ query: 'xy', limt: 3 }, 'limt: is not a known name. Did you mean "limit"?'],
    [{ query: { a: 'x'.repeat(100) } }, 'query: expected string, got a large value'],
    // A cut value could contain a part of a secret, because redaction finds only whole secrets.
    [{ query: 'xy', limit: 'ghp_'.repeat(20) }, 'limit: expected integer, got a text of 80 characters'],
    [{ query: Array.from({ length: 1e4 }, () => 0) }, 'query: expected string, got a list of 10000 items'],
    [
      JSON.parse('{"query": "xy", "__proto__": {"a": 1}}') as Record<string, unknown>,
      'the key "__proto__" is not allowed',
    ],
    [{ query: 'xy', filter: JSON.parse('{"sku": {"__proto__": 1}}') as unknown }, 'the key "__proto__" is not allowed'],
  ])('$1', async (args, message) => {
    expect(await messageOf(prepare(json).validateInput(args))).toBe(`invalid_arguments: find: ${message}`)
  })

  test('passes valid arguments on unchanged', async () => {
    const args = { query: 'xy', limit: 3, filter: null, either: 'x' }
    expect(await prepare(json).validateInput(args)).toBe(args)
  })
})

describe('arguments that a validation library rejects', () => {
  const schema = z.object({
    query: z.string(),
    from: z.iso.date().optional(),
    size: z.union([z.int(), z.literal('all')]).default('all'),
    pages: z
      .array(z.object({ n: z.int() }))
      .max(2)
      .optional(),
  })

  test.each<[Record<string, unknown>, string]>([
    [{}, 'query: is missing'],
    [
      { query: 5, from: 'x' },
      'query: Invalid input: expected string, received number, got 5; from_: Invalid ISO date, got "x"',
    ],
    [{ query: 'x', size: 'some' }, 'size: Invalid input, got "some"'],
    [{ query: 'x', pages: [{ n: 1 }, {}] }, 'pages[1].n: is missing'],
  ])('are reported by the names of the script: %j', async (args, message) => {
    expect(await messageOf(prepare(schema).validateInput(args))).toBe(`invalid_arguments: find: ${message}`)
  })

  test('are reported one by one up to five, and then counted', async () => {
    const many = z.object({ list: z.array(z.int()) })
    const message = await messageOf(prepare(many).validateInput({ list: Array.from({ length: 9 }, () => 'x') }))
    expect(message).toMatch(/^invalid_arguments: find: list\[0\]: .*; list\[4\]: [^;]*, got "x"; and 4 more$/)
  })

  test('are reported for ArkType, too', async () => {
    const tool = prepare(type({ n: '1 <= number.integer <= 9' }))
    expect(await messageOf(tool.validateInput({}))).toBe('invalid_arguments: find: n: is missing')
    expect(await messageOf(tool.validateInput({ n: 10 }))).toBe(
      'invalid_arguments: find: n: n must be at most 9 (was 10), got 10',
    )
  })

  test('otherwise keep the form of the library', async () => {
    const tool = prepare(z.object({ day: z.iso.date().transform((text) => new Date(text)), n: z.int().default(2) }))
    expect(await tool.validateInput({ day: '2026-01-02' })).toEqual({ day: new Date('2026-01-02'), n: 2 })
  })
})

describe('an answer', () => {
  const output = z.array(z.object({ total: z.number(), at: z.date().transform((date) => date.toISOString()) }))

  test('is sent as its schema transforms it', async () => {
    const at = new Date(0)
    expect(await prepare({ type: 'object' }, output).validateOutput([{ total: 1, at, secret: 'x' }])).toEqual([
      { total: 1, at: '1970-01-01T00:00:00.000Z' },
    ])
  })

  test('that does not match is reported without its content', async () => {
    expect(
      await messageOf(prepare({ type: 'object' }, output).validateOutput([{ total: 'hunter2', at: new Date(0) }])),
    ).toBe(
      "invalid_result: find: the answer does not match the tool's output schema: [0].total: Invalid input: expected number, received string",
    )
    const schema = { type: 'object', properties: { id: { const: 'A' } }, additionalProperties: false }
    expect(await messageOf(prepare({ type: 'object' }, schema).validateOutput({ id: 'hunter2' }))).toBe(
      'invalid_result: find: the answer does not match the tool\'s output schema: id: expected "A"',
    )
    expect(await messageOf(prepare({ type: 'object' }, schema).validateOutput('hunter2'))).toBe(
      "invalid_result: find: the answer does not match the tool's output schema: it: expected object",
    )
  })

  test('of a tool without an output schema may be any value', async () => {
    const answer = Symbol('anything')
    expect(await prepare({ type: 'object' }).validateOutput(answer)).toBe(answer)
  })
})

describe('invalid JSON Schema is rejected when the tool is prepared', () => {
  test.each<[Record<string, unknown>, RegExp]>([
    [{ type: 'object', properties: { a: { pattern: '(' } } }, /is not a valid JSON Schema: Invalid regular expression/],
    [{ type: 'object', properties: { a: { type: 'strng' } } }, /is not a valid JSON Schema: /],
    [{ type: 'object', properties: { a: { $ref: '#/$defs/gone' } } }, /can't resolve reference #\/\$defs\/gone/],
    [{ type: 'object', $async: true }, /uses the keyword \$async/],
    [
      { type: 'object', properties: Object.fromEntries(Array.from({ length: 257 }, (_, n) => [`p${n}`, {}])) },
      /has 257 parameters/,
    ],
  ])('$1', (input, problem) => {
    expect(() => prepare(input)).toThrow(TypeError)
    expect(() => prepare(input)).toThrow(problem)
    expect(() => prepare(input)).toThrow(/^tool "find": its input schema /)
  })

  test('ignores unknown keywords and formats, in both dialects', async () => {
    const property = { type: 'string', format: 'shape-of-water', 'x-order': 3, discriminator: {}, pattern: '\\-$' }
    const newer = { type: 'object', properties: { p: { prefixItems: [property] } } }
    const older = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: { p: { items: [property], additionalItems: false } },
    }
    const { $schema: _dialect, ...unsaid } = older
    for (const schema of [newer, older, unsaid]) {
      expect(await messageOf(prepare(schema).validateInput({ p: ['-'] }))).toEqual({ p: ['-'] })
      expect(await messageOf(prepare(schema).validateInput({ p: ['x'] }))).toBe(
        'invalid_arguments: find: p[0]: expected text that matches \\-$, got "x"',
      )
    }
    expect(await messageOf(prepare(older).validateInput({ p: ['-', 1] }))).toMatch(/^invalid_arguments: find: p: /)
  })

  test('tools whose schemas share an $id are each checked by their own', async () => {
    const one = prepare({ $id: 'https://sandglass.invalid/x', type: 'object', properties: { a: { type: 'string' } } })
    const other = prepare({
      $id: 'https://sandglass.invalid/x',
      type: 'object',
      properties: { a: { type: 'integer' } },
    })
    expect(await messageOf(one.validateInput({ a: 1 }))).toBe('invalid_arguments: find: a: expected string, got 1')
    expect(await messageOf(other.validateInput({ a: 1 }))).toEqual({ a: 1 })
  })

  test('prepares a schema whose description would be endless', () => {
    const level = (n: number): object => ({ allOf: Array.from({ length: 10 }, () => ({ $ref: `#/$defs/d${n + 1}` })) })
    const $defs = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`d${n}`, level(n)]))
    const input = {
      type: 'object',
      properties: { a: { $ref: '#/$defs/d0' } },
      $defs: { ...$defs, d30: { type: 'string' } },
    }
    expect(prepare(input).signature.params.map(({ name }) => name)).toEqual(['a'])
  })
})
