import { describe, expect, test } from 'vitest'
import { compileSchema } from '../../../src/tools/compile-schema.ts'
import { problemByJudge } from '../../../src/tools/schema-judge.ts'
import type { JsonSchemaObject } from '../../../src/tools/standard-schema.ts'
import { partsOf } from '../../../src/tools/value-parts.ts'
import { memoryOf } from '../../../src/support/value-size.ts'

const MiB = 1024 * 1024
const COUNT = 40_000
const ROW = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
const ROWS = { type: 'array', items: ROW }
const PAGE = { type: 'object', properties: { rows: ROWS }, required: ['rows'], additionalProperties: false }
const rows = (wrongAt?: number): unknown[] =>
  Array.from({ length: COUNT }, (_, n) => (n === wrongAt ? { n: 'x' } : { n }))

const partsIn = (schema: JsonSchemaObject, value: unknown) => [...partsOf(schema, JSON.stringify(schema), value)]
const judge = (json: JsonSchemaObject, value: unknown) => problemByJudge({ json, text: JSON.stringify(json) }, value)

describe('a large value is judged in parts', () => {
  test('the lists are left out of the first part, and each item is in one of the others', () => {
    const value = { rows: rows() }
    const [first, ...pieces] = partsIn(PAGE, value)
    expect(first).toEqual({ schema: PAGE, value: { rows: [] }, path: [] })
    expect(pieces.flatMap((piece) => piece.value)).toEqual(value.rows)
    expect(new Set(pieces.map(({ path }) => path.join('.')))).toEqual(new Set(['rows']))
    expect(pieces.length).toBeGreaterThan(2)
    expect(Math.max(...pieces.map((piece) => memoryOf(piece.value)))).toBeLessThan(2 * MiB)
    expect(value.rows).toHaveLength(COUNT)
  })

  test.each<[string, JsonSchemaObject, unknown, unknown]>([
    ['an item of a list', ROWS, rows(30_000), [30_000, 'n']],
    ['an item of a field', PAGE, { rows: rows(30_000) }, ['rows', 30_000, 'n']],
    ['a field beside the list', PAGE, { rows: rows(), more: 1 }, ['more']],
    ['a field that is missing', { ...PAGE, required: ['total'] }, { rows: rows() }, ['total']],
    [
      'an item by a definition',
      { ...PAGE, properties: { rows: { type: 'array', items: { $ref: '#/$defs/row' } } }, $defs: { row: ROW } },
      { rows: rows(COUNT - 1) },
      ['rows', COUNT - 1, 'n'],
    ],
  ])('and the place of a problem is that in the value: %s', async (_, schema, value, path) => {
    const problem = await judge(schema, value)
    expect(problem).toEqual(compileSchema(schema)(value))
    expect(problem?.path).toEqual(path)
  })

  test('and is valid if all parts are', async () => {
    expect(await judge(PAGE, { rows: rows() })).toBe(undefined)
  })
})

describe('a value stays whole', () => {
  const inPage = (list: JsonSchemaObject): JsonSchemaObject => ({ type: 'object', properties: { rows: list } })
  test.each<[string, JsonSchemaObject]>([
    ['a number of items', inPage({ ...ROWS, maxItems: 30_000 })],
    ['a minimum of items', inPage({ ...ROWS, minItems: 50_000 })],
    ['different items', inPage({ ...ROWS, uniqueItems: true })],
    ['one of the items', inPage({ ...ROWS, contains: { required: ['m'] } })],
    ['the first items', inPage({ prefixItems: [{}, { type: 'string' }], ...ROWS })],
    ['a second schema for the object', { ...PAGE, not: { properties: { rows: { minItems: 1 } } } }],
    ['a reference to a place', inPage({ type: 'array', items: { anyOf: [{ $ref: '#/properties/rows' }, ROW] } })],
    ['an identifier', { $id: 'https://example.org/a', ...PAGE }],
  ])('where its schema judges more than each item: %s', (_, schema) => {
    const value = { rows: [...rows(), { n: 0 }] }
    expect(partsIn(schema, value)).toEqual([{ schema, value, path: [] }])
  })

  test('where it is small', () => {
    const value = { rows: [{ n: 1 }] }
    expect(partsIn(PAGE, value)).toEqual([{ schema: PAGE, value, path: [] }])
  })

  test('where an object writes its own JSON', () => {
    const value = { rows: rows(), toJSON: () => 1 }
    expect(partsIn(PAGE, value).map((part) => part.value)).toEqual([value])
  })
})
