import { type } from 'arktype'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, type PreparedTool, prepareTools, ToolCallError, type ToolSchema } from '../../src/tools/index.ts'

function prepared(input: ToolSchema, output?: ToolSchema): PreparedTool {
  const made = defineTool({ name: 'find', description: '', input, output, execute: () => null })
  const [tool] = prepareTools([made]).tools.values()
  if (tool === undefined) throw new Error('no tool')
  return tool
}

/** What the script is told. */
async function told(work: Promise<unknown>): Promise<unknown> {
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

describe('arguments that JSON Schema does not admit are told by the names of the script', () => {
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
    [{ query: 'xy', limt: 3 }, 'limt: there is no such name. Did you mean "limit"?'],
    [{ query: { a: 'x'.repeat(100) } }, `query: expected string, got {"a":"${'x'.repeat(54)}…`],
    [{ query: Array.from({ length: 1e5 }, () => 0) }, 'query: expected string, got a list of 100000 items'],
    [
      JSON.parse('{"query": "xy", "__proto__": {"a": 1}}') as Record<string, unknown>,
      'the key "__proto__" is not allowed',
    ],
    [{ query: 'xy', filter: JSON.parse('{"sku": {"__proto__": 1}}') as unknown }, 'the key "__proto__" is not allowed'],
  ])('$1', async (args, message) => {
    expect(await told(prepared(json).validateInput(args))).toBe(`invalid_arguments: find: ${message}`)
  })

  test('those that it admits are given as they came', async () => {
    const args = { query: 'xy', limit: 3, filter: null, either: 'x' }
    expect(await prepared(json).validateInput(args)).toBe(args)
  })
})

test.each([
  ['^(a+)+$', 'a'.repeat(40)],
  ['^(a|a)*$', 'a'.repeat(40)],
  ['a*a*a*a*b$', 'a'.repeat(20_000)],
])('a pattern that takes hours for a text does not match it: %s', async (pattern, text) => {
  const tool = prepared({ type: 'object', properties: { p: { type: 'string', pattern } } })
  const start = performance.now()
  expect(await told(tool.validateInput({ p: `${text}!` }))).toMatch(
    /^invalid_arguments: find: p: expected text that matches /,
  )
  expect(performance.now() - start).toBeLessThan(5000)
})

describe('arguments that a validation library does not admit', () => {
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
  ])('are told by the names of the script: %j', async (args, message) => {
    expect(await told(prepared(schema).validateInput(args))).toBe(`invalid_arguments: find: ${message}`)
  })

  test('are told one by one up to five, and then counted', async () => {
    const many = z.object({ list: z.array(z.int()) })
    const message = await told(prepared(many).validateInput({ list: Array.from({ length: 9 }, () => 'x') }))
    expect(message).toMatch(/^invalid_arguments: find: list\[0\]: .*; list\[4\]: [^;]*, got "x"; and 4 more$/)
  })

  test('are told for ArkType too', async () => {
    const tool = prepared(type({ n: '1 <= number.integer <= 9' }))
    expect(await told(tool.validateInput({}))).toBe('invalid_arguments: find: n: is missing')
    expect(await told(tool.validateInput({ n: 10 }))).toBe(
      'invalid_arguments: find: n: n must be at most 9 (was 10), got 10',
    )
  })

  test('are otherwise given as the library gives them', async () => {
    const tool = prepared(z.object({ day: z.iso.date().transform((text) => new Date(text)), n: z.int().default(2) }))
    expect(await tool.validateInput({ day: '2026-01-02' })).toEqual({ day: new Date('2026-01-02'), n: 2 })
  })
})

describe('an answer', () => {
  const output = z.array(z.object({ total: z.number(), at: z.date().transform((date) => date.toISOString()) }))

  test('is sent as its schema gives it', async () => {
    const at = new Date(0)
    expect(await prepared({ type: 'object' }, output).validateOutput([{ total: 1, at, secret: 'x' }])).toEqual([
      { total: 1, at: '1970-01-01T00:00:00.000Z' },
    ])
  })

  test('that does not match is told without what it holds', async () => {
    expect(
      await told(prepared({ type: 'object' }, output).validateOutput([{ total: 'hunter2', at: new Date(0) }])),
    ).toBe(
      "invalid_result: find: the answer does not match the tool's output schema: [0].total: Invalid input: expected number, received string",
    )
    const schema = { type: 'object', properties: { id: { const: 'A' } }, additionalProperties: false }
    expect(await told(prepared({ type: 'object' }, schema).validateOutput({ id: 'hunter2' }))).toBe(
      'invalid_result: find: the answer does not match the tool\'s output schema: id: expected "A"',
    )
    expect(await told(prepared({ type: 'object' }, schema).validateOutput('hunter2'))).toBe(
      "invalid_result: find: the answer does not match the tool's output schema: it: expected object",
    )
  })

  test('of a tool without an output schema is anything', async () => {
    const answer = Symbol('anything')
    expect(await prepared({ type: 'object' }).validateOutput(answer)).toBe(answer)
  })
})

describe('JSON Schema that is not sound is refused when the tool is prepared', () => {
  test.each<[Record<string, unknown>, RegExp]>([
    [{ type: 'object', properties: { a: { pattern: '(' } } }, /is no sound JSON Schema: Invalid regular expression/],
    [{ type: 'object', properties: { a: { type: 'strng' } } }, /is no sound JSON Schema: /],
    [{ type: 'object', properties: { a: { $ref: '#/$defs/gone' } } }, /can't resolve reference #\/\$defs\/gone/],
    [{ type: 'object', $async: true }, /has the keyword \$async/],
    [
      { type: 'object', properties: Object.fromEntries(Array.from({ length: 257 }, (_, n) => [`p${n}`, {}])) },
      /has 257 parameters/,
    ],
  ])('$1', (input, problem) => {
    expect(() => prepared(input)).toThrow(TypeError)
    expect(() => prepared(input)).toThrow(problem)
    expect(() => prepared(input)).toThrow(/^tool "find": its input schema /)
  })

  test('keywords and formats that nobody knows are passed over, in both dialects', async () => {
    const property = { type: 'string', format: 'shape-of-water', 'x-order': 3, discriminator: {}, pattern: '\\-$' }
    const newer = { type: 'object', properties: { p: { prefixItems: [property] } } }
    const older = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: { p: { items: [property], additionalItems: false } },
    }
    const { $schema: _dialect, ...unsaid } = older
    for (const schema of [newer, older, unsaid]) {
      expect(await told(prepared(schema).validateInput({ p: ['-'] }))).toEqual({ p: ['-'] })
      expect(await told(prepared(schema).validateInput({ p: ['x'] }))).toBe(
        'invalid_arguments: find: p[0]: expected text that matches \\-$, got "x"',
      )
    }
    expect(await told(prepared(older).validateInput({ p: ['-', 1] }))).toMatch(/^invalid_arguments: find: p: /)
  })

  test('tools whose schemas have one $id are each checked by their own', async () => {
    const one = prepared({ $id: 'https://sandglass.invalid/x', type: 'object', properties: { a: { type: 'string' } } })
    const other = prepared({
      $id: 'https://sandglass.invalid/x',
      type: 'object',
      properties: { a: { type: 'integer' } },
    })
    expect(await told(one.validateInput({ a: 1 }))).toBe('invalid_arguments: find: a: expected string, got 1')
    expect(await told(other.validateInput({ a: 1 }))).toEqual({ a: 1 })
  })

  test('a schema that grows without end in words is prepared all the same', () => {
    const level = (n: number): object => ({ allOf: Array.from({ length: 10 }, () => ({ $ref: `#/$defs/d${n + 1}` })) })
    const $defs = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`d${n}`, level(n)]))
    const input = {
      type: 'object',
      properties: { a: { $ref: '#/$defs/d0' } },
      $defs: { ...$defs, d30: { type: 'string' } },
    }
    expect(prepared(input).signature.params.map(({ name }) => name)).toEqual(['a'])
  })
})
