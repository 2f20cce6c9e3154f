import { type } from 'arktype'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { z as z3 } from 'zod/v3'
import { jsonSchemaOf, inlineReferences } from '../../../src/tools/json-schema.ts'

describe('the JSON Schema of a schema', () => {
  const dialect = 'https://json-schema.org/draft/2020-12/schema'

  test('of zod 4 describes its input or its output', () => {
    const schema = z.object({ n: z.int().min(1).default(3), s: z.string().transform((text) => text.length) })
    expect(jsonSchemaOf(schema, 'input')).toEqual({
      $schema: dialect,
      type: 'object',
      properties: {
        n: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER, default: 3 },
        s: { type: 'string' },
      },
      required: ['s'],
    })
    expect(jsonSchemaOf(schema, 'output')).toEqual({
      $schema: dialect,
      type: 'object',
      properties: { n: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER, default: 3 }, s: {} },
      required: ['n', 's'],
      additionalProperties: false,
    })
  })

  test('of an older zod 4, which has no Standard JSON Schema, is the same', () => {
    const schema = z.object({ n: z.int() })
    const { jsonSchema: _converter, ...older } = schema['~standard'] as unknown as { jsonSchema: unknown }
    const old = Object.create(schema, { '~standard': { value: older } }) as typeof schema
    expect(jsonSchemaOf(old, 'input')).toEqual(jsonSchemaOf(schema, 'input'))
  })

  test('of zod 3 has its types, fields and defaults', () => {
    // TypeScript's output for `enum Unit { Celsius = 'C' }` and `enum Level { Low }`.
    const Unit = { Celsius: 'C' } as const
    const Level = { Low: 0, 0: 'Low' } as const
    const schema = z3.object({
      s: z3.string().min(2).describe('Text'),
      n: z3.number().int().default(3),
      f: z3.number().optional(),
      b: z3.boolean().nullable(),
      e: z3.enum(['a', 'b']),
      u: z3.union([z3.nativeEnum(Unit), z3.nativeEnum(Level)]),
      l: z3.array(z3.literal('x')).readonly(),
      t: z3.tuple([z3.string(), z3.null()]),
      r: z3.record(z3.string(), z3.unknown()),
      d: z3.discriminatedUnion('k', [z3.object({ k: z3.literal(1) }).strict(), z3.object({ k: z3.literal(2) })]),
      x: z3.lazy(() => z3.object({}).passthrough()).transform(String),
      i: z3.string().and(z3.string().brand('i')),
      p: z3.string().pipe(z3.coerce.number()),
      c: z3.string().catch(''),
    })
    const kind = (value: number, more: object = {}): object => ({
      type: 'object',
      properties: { k: { const: value } },
      required: ['k'],
      ...more,
    })
    expect(jsonSchemaOf(schema, 'input')).toEqual({
      type: 'object',
      properties: {
        s: { type: 'string', description: 'Text' },
        n: { type: 'integer', default: 3 },
        f: { type: 'number' },
        b: { anyOf: [{ type: 'boolean' }, { type: 'null' }] },
        e: { enum: ['a', 'b'] },
        u: { anyOf: [{ enum: ['C'] }, { enum: [0] }] },
        l: { type: 'array', items: { const: 'x' } },
        t: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'null' }], items: false },
        r: { type: 'object', additionalProperties: {} },
        d: { anyOf: [kind(1, { additionalProperties: false }), kind(2)] },
        x: { type: 'object', properties: {}, required: [], additionalProperties: {} },
        i: { allOf: [{ type: 'string' }, { type: 'string' }] },
        p: { type: 'string' },
        c: { type: 'string' },
      },
      required: ['s', 'b', 'e', 'u', 'l', 't', 'r', 'd', 'x', 'i', 'p'],
    })
  })

  test('of ArkType comes from its Standard JSON Schema', () => {
    expect(jsonSchemaOf(type({ n: 'number.integer', 's?': 'string' }), 'input')).toEqual({
      $schema: dialect,
      type: 'object',
      properties: { n: { type: 'integer' }, s: { type: 'string' } },
      required: ['n'],
    })
  })

  test('of JSON Schema is a copy', () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    const copy = jsonSchemaOf(schema, 'input')
    schema.properties.a.type = 'number'
    expect(copy).toEqual({ type: 'object', properties: { a: { type: 'string' } } })
  })

  const deep = (levels: number): object => (levels === 0 ? {} : { not: deep(levels - 1) })
  const circular: Record<string, unknown> = {}
  circular['not'] = circular
  test.each<[string, Parameters<typeof jsonSchemaOf>[0], RegExp]>([
    ['a Date in zod', z.object({ at: z.date() }), /^cannot be written as JSON Schema: Date cannot be represented/],
    [
      'a library that gives none',
      { '~standard': { vendor: 'other', validate: (value: unknown) => ({ value }) } },
      /^comes from "other", which provides no JSON Schema/,
    ],
    ['one in a circle', circular, /^is not JSON: /],
    ['one that nests too deep', deep(101) as Record<string, unknown>, /^nests deeper than 100 levels$/],
    [
      'one that is too large',
      { description: 'x'.repeat(2 ** 20) },
      /^has 1048594 characters; at most 1048576 are allowed$/,
    ],
    [
      'one with the key __proto__',
      JSON.parse('{"properties": {"__proto__": {"type": "string"}}}') as Record<string, unknown>,
      /^holds the key "__proto__"$/,
    ],
  ])('refuses %s', (_what, schema, message) => {
    expect(() => jsonSchemaOf(schema, 'input')).toThrow(TypeError)
    expect(() => jsonSchemaOf(schema, 'input')).toThrow(message)
  })
})

describe('a schema without references', () => {
  test.each<[string, Record<string, unknown>, unknown]>([
    [
      'has the referenced schemas inline, merged with their siblings',
      {
        $schema: 'x',
        properties: { a: { $ref: '#/$defs/a~1b', description: 'A' }, b: { $ref: '#/properties/a', minLength: 2 } },
        $defs: { 'a/b': { type: 'string', description: 'old' } },
      },
      {
        properties: {
          a: { type: 'string', description: 'A' },
          b: { minLength: 2, allOf: [{ type: 'string', description: 'A' }] },
        },
      },
    ],
    [
      'ends at a recursive definition',
      { definitions: { n: { items: { $ref: '#/definitions/n' } } }, $ref: '#/definitions/n' },
      { items: { items: true } },
    ],
    ['finds anchors', { $ref: '#here', $defs: { x: { $anchor: 'here', type: 'null' } } }, { type: 'null' }],
    ['admits everything where there is nothing to be found', { items: { $ref: 'https://elsewhere' } }, { items: true }],
    [
      'leaves data alone',
      { default: { $ref: '#/x' }, enum: [{ $ref: '#/x' }], const: { not: 1 }, examples: [{ $ref: '#' }] },
      { default: { $ref: '#/x' }, enum: [{ $ref: '#/x' }], const: { not: 1 }, examples: [{ $ref: '#' }] },
    ],
    [
      'holds nothing that a cut could turn around',
      { type: 'string', not: { $ref: '#' }, if: {}, else: {}, oneOf: [true, { type: 'string' }] },
      { type: 'string', anyOf: [true, { type: 'string' }] },
    ],
  ])('%s', (_what, schema, expected) => {
    expect(inlineReferences(schema)).toEqual(expected)
  })

  test('that would double at every level stays small', () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 40 }, (_, index) => [
        `d${index}`,
        { properties: { a: { $ref: `#/$defs/d${index + 1}` }, b: { $ref: `#/$defs/d${index + 1}` } } },
      ]),
    )
    expect(JSON.stringify(inlineReferences({ $ref: '#/$defs/d0', $defs })).length).toBeLessThan(500_000)
  })
})
