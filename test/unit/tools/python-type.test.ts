import { describe, expect, test } from 'vitest'
import { PythonClasses } from '../../../src/tools/python-classes.ts'
import { PythonTypes } from '../../../src/tools/python-type.ts'

/** The annotation of a schema and its classes. */
function annotate(schema: Record<string, unknown>): { type: string; classes: string[] } {
  const classes = new PythonClasses()
  const type = new PythonTypes(schema, classes).annotation(schema, ['find_orders', 'filter'])
  return { type, classes: classes.list.map(({ source }) => source) }
}

describe('annotations without classes', () => {
  test.each<[string, Record<string, unknown>]>([
    ['str', { type: 'string' }],
    ['int', { type: 'integer' }],
    ['float', { type: 'number' }],
    ['bool', { type: 'boolean' }],
    ['None', { type: 'null' }],
    ['Any', {}],
    ['Any', { description: 'anything' }],
    ['Any', { type: 'unheard of' }],
    ['Any', { $ref: '#/$defs/nowhere' }],
    ['Any', { $ref: '#' }],
    ['list[str]', { type: 'array', items: { type: 'string' } }],
    ['list[Any]', { type: 'array' }],
    ['list[list[int]]', { type: 'array', items: { type: 'array', items: { type: 'integer' } } }],
    ['dict[str, int]', { type: 'object', additionalProperties: { type: 'integer' } }],
    ['dict[str, Any]', { type: 'object' }],
    ['dict[str, Any]', { type: 'object', properties: {}, additionalProperties: false }],
    ['dict[str, bool]', { type: 'object', patternProperties: { '^x-': { type: 'boolean' } } }],
    ['Literal["a", "b"]', { type: 'string', enum: ['a', 'b'] }],
    ['Literal[1, True] | float | None', { enum: [1, true, 1.5, null] }],
    ['Literal["it\'s"]', { const: "it's" }],
    ['str', { enum: Array.from({ length: 100 }, (_, index) => `value ${index}`) }],
    ['str | None', { type: ['string', 'null'] }],
    ['str | None', { anyOf: [{ type: 'null' }, { type: 'string' }] }],
    ['str | None', { type: 'string', nullable: true }],
    ['str | float', { oneOf: [{ type: 'string' }, { type: 'integer' }, { type: 'number' }] }],
    ['Literal["a", "b"] | None', { anyOf: [{ const: 'a' }, { const: 'b' }, { type: 'null' }] }],
    ['Any', { anyOf: [{ type: 'string' }, {}] }],
    ['tuple[str, int]', { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }], items: false }],
    ['tuple[str, int]', { type: 'array', items: [{ type: 'string' }, { type: 'integer' }], additionalItems: false }],
    ['list[str | int]', { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'integer' } }],
    ['list[int]', { items: { type: 'integer' } }],
    ['int', { allOf: [{ type: 'integer' }, { minimum: 3 }] }],
    ['str', { type: 'string', anyOf: [{ minLength: 3 }, { format: 'email' }] }],
  ])('%s', (type, schema) => {
    expect(annotate(schema)).toEqual({ type, classes: [] })
  })
})

describe('classes', () => {
  test('an object with known fields is a TypedDict, named after its title or else its place', () => {
    const address = { type: 'object', title: 'postal address', properties: { city: { type: 'string' } } }
    const schema = {
      type: 'object',
      properties: { to: address, cc: { type: 'array', items: address } },
      required: ['to'],
    }
    expect(annotate(schema)).toEqual({
      type: 'FindOrdersFilter',
      classes: [
        'class PostalAddress(TypedDict):\n    city: NotRequired[str]',
        'class FindOrdersFilter(TypedDict):\n    to: PostalAddress\n    cc: NotRequired[list[PostalAddress]]',
      ],
    })
  })

  test('two different objects of one title have two names', () => {
    const schema = {
      anyOf: [
        { type: 'object', title: 'Item', properties: { a: { type: 'string' } }, required: ['a'] },
        { type: 'object', title: 'Item', properties: { b: { type: 'string' } }, required: ['b'] },
      ],
    }
    expect(annotate(schema)).toEqual({
      type: 'Item | Item2',
      classes: ['class Item(TypedDict):\n    a: str', 'class Item2(TypedDict):\n    b: str'],
    })
  })

  test('a recursive definition is quoted inside itself', () => {
    const schema = {
      $ref: '#/$defs/node',
      $defs: {
        node: {
          type: 'object',
          properties: { value: { type: 'integer' }, next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
          required: ['value', 'next'],
        },
      },
    }
    expect(annotate(schema)).toEqual({
      type: 'Node',
      classes: ['class Node(TypedDict):\n    value: int\n    next: "Node | None"'],
    })
  })

  test('fields show their constraints, and keys that are not identifiers are written as keys', () => {
    const schema = {
      type: 'object',
      properties: {
        from: { type: 'string', format: 'date', description: 'First day' },
        'x-max': { type: 'integer', minimum: 1, maximum: 9 },
      },
      required: ['from'],
    }
    expect(annotate(schema)).toEqual({
      type: 'FindOrdersFilter',
      classes: [
        'FindOrdersFilter = TypedDict("FindOrdersFilter", {\n' +
          '    "from": str,  # First day; format: date\n' +
          '    "x-max": NotRequired[int],  # 1 to 9\n' +
          '})',
      ],
    })
  })

  test('parts of allOf are one object', () => {
    const schema = {
      allOf: [{ $ref: '#/$defs/Base' }, { type: 'object', properties: { b: { type: 'integer' } }, required: ['b'] }],
      $defs: { Base: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] } },
    }
    expect(annotate(schema)).toEqual({
      type: 'FindOrdersFilter',
      classes: ['class FindOrdersFilter(TypedDict):\n    a: str\n    b: int'],
    })
  })

  test('an endlessly branching schema ends', () => {
    const wide = {
      type: 'object',
      properties: Object.fromEntries('abcdefgh'.split('').map((key) => [key, { $ref: '#' }])),
    }
    const nest = (depth: number): object =>
      depth === 0 ? { type: 'string' } : { type: 'object', properties: { a: nest(depth - 1), b: nest(depth - 1) } }
    expect(annotate(wide).classes).toHaveLength(1)
    expect(annotate(nest(10) as Record<string, unknown>).classes.length).toBeLessThanOrEqual(100)
  })
})
