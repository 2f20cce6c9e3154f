import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, prepareTools, type ToolSchema } from '../../../src/tools/index.ts'

function signatureOf(input: ToolSchema, output?: ToolSchema): object {
  const tool = defineTool({ name: 'find', description: 'Finds things.', input, output, execute: () => null })
  return prepareTools([tool]).signatures[0] ?? {}
}

const bare = { name: 'find', more: false, returns: 'Any', types: '', doc: 'Finds things.' }

describe('the signature of a tool', () => {
  test('has required parameters first, then those with a default, then optional ones', () => {
    const input = z.object({
      limit: z.int().min(1).max(100).default(10).describe('Most things to return.'),
      query: z.string().describe('Words to look for.'),
      cc: z.array(z.email()).optional(),
      from: z.enum(['a', 'b']),
      until: z.iso.date().nullable().optional(),
    })
    expect(signatureOf(input, z.array(z.string()).describe('Names.'))).toEqual({
      name: 'find',
      params: [
        { name: 'query', type: 'str', required: true, nullable: false },
        { name: 'from_', key: 'from', type: 'Literal["a", "b"]', required: true, nullable: false },
        { name: 'limit', type: 'int', required: false, nullable: false, default: 10 },
        { name: 'cc', type: 'list[str] | None', required: false, nullable: false },
        { name: 'until', type: 'str | None', required: false, nullable: true },
      ],
      more: false,
      returns: 'list[str]',
      types: '',
      doc: [
        'Finds things.',
        '',
        'Args:',
        '    query: Words to look for.',
        '    limit: Most things to return. (1 to 100)',
        '    cc: each: format: email',
        '    until: format: date',
        '',
        'Returns:',
        '    Names.',
      ].join('\n'),
    })
  })

  test.each<[string, Record<string, unknown>, boolean]>([
    ['nothing is said of its properties', { type: 'object' }, true],
    ['its properties are listed and empty', { type: 'object', properties: {} }, false],
    ['others are admitted', { type: 'object', properties: {}, additionalProperties: true }, true],
    ['others are excluded', { type: 'object', additionalProperties: false }, false],
    ['it admits anything at all', {}, true],
  ])('takes more keywords, or not, where %s', (_when, input, more) => {
    expect(signatureOf(input)).toEqual({ ...bare, params: [], more })
  })

  test('gives each key a unique name', () => {
    const property = { type: 'string' }
    const properties = { 'a-b': property, a_b: property, 'a.b': property, more: property }
    const input = { type: 'object', properties, required: Object.keys(properties), additionalProperties: {} }
    const param = (name: string, key?: string): object => ({
      name,
      ...(key === undefined ? {} : { key }),
      type: 'str',
      required: true,
      nullable: false,
    })
    expect(signatureOf(input)).toEqual({
      ...bare,
      params: [param('a_b_2', 'a-b'), param('a_b'), param('a_b_3', 'a.b'), param('more_', 'more')],
      more: true,
    })
  })

  test('merges the branches of a union of objects', () => {
    const input = z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('id'), id: z.int() }),
      z.object({ kind: z.literal('name'), name: z.string() }),
    ])
    expect(signatureOf(input)).toMatchObject({
      params: [
        { name: 'kind', type: 'Literal["id", "name"]', required: true, nullable: false },
        { name: 'id', type: 'int | None', required: false, nullable: false },
        { name: 'name', type: 'str | None', required: false, nullable: false },
      ],
    })
  })

  test('omits a default that its type excludes', () => {
    const input = { type: 'object', properties: { n: { type: 'integer', default: 'ten' } } }
    const param = { name: 'n', type: 'int | None', required: false, nullable: false }
    expect(signatureOf(input)).toEqual({ ...bare, params: [param] })
  })

  test('excludes text that would end or hide the docstring', () => {
    const input = { type: 'object', properties: { q: { type: 'string', description: 'say """\u202E\u0000 \\N' } } }
    expect(signatureOf(input)).toMatchObject({ doc: `Finds things.\n\nArgs:\n    q: say ''' \\N` })
  })

  test.each<[string, ToolSchema, string]>([
    ['a string', { type: 'string' }, 'must describe an object: its properties are the parameters of the function'],
    ['a list', z.array(z.string()), 'must describe an object: its properties are the parameters of the function'],
    [
      'an object or a string',
      z.union([z.object({}), z.string()]),
      'must describe an object: its properties are the parameters of the function',
    ],
  ])('of an input that is %s is refused', (_what, input, problem) => {
    expect(() => signatureOf(input)).toThrow(new TypeError(`tool "find": its input schema ${problem}`))
  })
})

test('the checker gets schemas without references, by the names in Python', () => {
  const input = {
    type: 'object',
    properties: { from: { $ref: '#/$defs/day', description: 'First' }, node: { $ref: '#/$defs/node' } },
    $defs: {
      day: { type: 'string', format: 'date' },
      node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } },
    },
  }
  const tool = defineTool({ name: 'find', description: '', input, output: z.int().min(0), execute: () => 0 })
  const prepared = prepareTools([tool]).tools.get('find')
  const { schemas, result, ...signature } = prepared?.checked ?? { schemas: undefined, result: undefined }
  expect(signature).toEqual(prepared?.signature)
  expect({ schemas, result }).toEqual({
    schemas: {
      from_: { type: 'string', format: 'date', description: 'First' },
      node: {
        type: 'object',
        properties: { next: { type: 'object', properties: { next: true } } },
      },
    },
    result: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  })
})
