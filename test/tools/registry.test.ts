import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  definePythonTool,
  defineTool,
  parametersSchema,
  prepareTools,
  type PythonToolOptions,
  type Tool,
  ToolRegistry,
} from '../../src/tools/index.ts'

const host = (name: string, more: Partial<Tool> = {}): Tool =>
  defineTool({ name, description: name, input: z.object({ a: z.int() }), execute: () => null, ...more })
const clean = definePythonTool({
  source: 'import pandas\n\ndef clean(rows, how="fast"):\n    return rows\n',
  description: 'Cleans rows.',
  parameters: [
    { name: 'rows', type: 'list[dict]', description: 'Rows to clean.' },
    { name: 'how', type: 'str', default: 'fast', options: ['fast', 'well'], examples: ['well'] },
  ],
  dependencies: ['pandas>=2', 'numpy'],
  secrets: ['S3_KEY'],
  sandbox: 'data',
})

// OR-11
describe('a registry', () => {
  const filled = (order: (list: readonly (() => unknown)[]) => readonly (() => unknown)[]): ToolRegistry => {
    const registry = new ToolRegistry()
    const steps = [
      () => registry.register(clean),
      () => registry.register(orders, { sandbox: 'data', dependencies: ['numpy', 'duckdb'] }),
      () => registry.register(mail),
    ]
    for (const step of order(steps)) step()
    return registry
  }
  const orders = host('orders', { secrets: ['DB_URL', 'DB_KEY'] })
  const mail = host('mail')
  const registry = filled((steps) => steps)

  test('says what each sandbox needs: its tools, and the union of their dependencies and secrets', () => {
    expect(registry.sandboxes).toEqual(['data', 'default'])
    expect(registry.forSandbox('data')).toEqual({
      sandbox: 'data',
      tools: [orders],
      pythonTools: [clean],
      dependencies: ['duckdb', 'numpy', 'pandas>=2'],
      secrets: ['S3_KEY'],
      hostSecrets: ['DB_KEY', 'DB_URL'],
      digest: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    })
    expect(registry.forSandbox('default').tools).toEqual([mail])
    expect(registry.forSandbox('nowhere')).toMatchObject({ tools: [], pythonTools: [], dependencies: [] })
    expect(registry.forSandbox('data')).toBe(registry.forSandbox('data'))
    expect(prepareTools(registry.forSandbox('data'))).toBe(prepareTools(registry.forSandbox('data')))
  })

  test('has one digest for the same tools, whatever the order, and another for others', () => {
    const turned = filled((steps) => steps.toReversed())
    expect(turned.digest).toBe(registry.digest)
    expect(turned.forSandbox('data').digest).toBe(registry.forSandbox('data').digest)
    expect(turned.register(host('more')).digest).not.toBe(registry.digest)
    expect(turned.forSandbox('data').digest).toBe(registry.forSandbox('data').digest)
    const one = (...given: Parameters<ToolRegistry['register']>): string => new ToolRegistry().register(...given).digest
    const digests = [
      one(mail),
      one(mail, { sandbox: 'other' }),
      one(mail, { dependencies: ['x'] }),
      one(host('mail', { effect: 'read' })),
      one(host('mail', { input: z.object({ b: z.int() }) })),
      one(clean),
      one({ ...clean, source: `${clean.source}# changed` }),
    ]
    expect(new Set(digests).size).toBe(digests.length)
  })

  test('refuses a name that the sandbox has, and what is no tool', () => {
    expect(() => filled((steps) => steps).register(host('mail'))).toThrow(
      new TypeError('ToolRegistry: the sandbox "default" has a tool "mail" already'),
    )
    expect(() => new ToolRegistry().register({} as Tool)).toThrow(TypeError)
  })
})

describe('parameters as a list', () => {
  test('are JSON Schema', () => {
    expect(
      parametersSchema([
        { name: 'city', type: 'str', description: 'A city.', examples: ['Rome'] },
        { name: 'days', type: 'int', default: 3 },
        { name: 'unit', type: 'string', required: false, options: ['C', 'F'] },
        { name: 'tags', type: 'list[str]', required: true, default: [] },
        { name: 'extra', type: 'any', required: false },
      ]),
    ).toEqual({
      type: 'object',
      properties: {
        city: { type: 'string', description: 'A city.', examples: ['Rome'] },
        days: { type: 'integer', default: 3 },
        unit: { type: 'string', enum: ['C', 'F'] },
        tags: { type: 'array', items: { type: 'string' }, default: [] },
        extra: {},
      },
      required: ['city', 'tags'],
      additionalProperties: false,
    })
  })

  test.each([
    [[{ name: 'a', type: 'text' }], 'parameters: "a" has the unknown type "text"'],
    [[{ name: '', type: 'str' }], 'parameters: "" is no name'],
    [[{ name: '__proto__', type: 'str' }], 'parameters: "__proto__" is no name'],
    [
      [
        { name: 'a', type: 'str' },
        { name: 'a', type: 'int' },
      ],
      'parameters: "a" stands twice',
    ],
    [
      [{ name: 'a', type: 'str', options: ['x'], default: 'y' }],
      `parameters: the default 'y' of "a" is none of its options`,
    ],
  ])('%j are refused', (parameters, message) => {
    expect(() => parametersSchema(parameters)).toThrow(new TypeError(message))
  })
})

describe('a tool of Python source', () => {
  let directory: string
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'sandglass-'))
    writeFileSync(join(directory, 'shout.py'), 'def _hidden(): pass\n\nasync def shout(text): return text.upper()\n')
  })
  afterAll(() => rmSync(directory, { recursive: true }))

  test('has a signature like any other', () => {
    expect(clean.name).toBe('clean')
    expect(clean.signature).toEqual({
      name: 'clean',
      params: [
        { name: 'rows', type: 'list[dict[str, Any]]', required: true, nullable: false },
        { name: 'how', type: 'Literal["fast", "well"]', required: false, nullable: false, default: 'fast' },
      ],
      more: false,
      returns: 'Any',
      types: '',
      doc: "Cleans rows.\n\nArgs:\n    rows: Rows to clean.\n    how: for example 'well'\n\nRaises:\n    ToolError: the call failed; `code` and the text tell why.",
    })
  })

  test('may stand in a file, which names it', () => {
    const tool = definePythonTool({ file: join(directory, 'shout.py'), description: 'Shouts.' })
    expect([tool.name, tool.source.length, tool.signature.more]).toEqual(['shout', 64, true])
  })

  test.each<[Partial<PythonToolOptions>, RegExp]>([
    [{ source: undefined as never }, /^definePythonTool: give source or file, one of the two$/],
    [{ file: 'x.py' }, /^definePythonTool: give source or file, one of the two$/],
    [{ source: 'x = 1' }, /^a tool has an empty name$/],
    [{ name: 'g' }, /^definePythonTool: the source defines no function g$/],
    [{ source: 'def print(): pass' }, /^the tool name "print" is a builtin of Python/],
    [{ name: 'a-b' }, /^definePythonTool: "a-b" is no name of a function$/],
    [{ param: [] } as never, /^definePythonTool: no option "param"\./],
  ])('%j is refused', (options, message) => {
    const sound = { source: 'def f(): pass', description: 'F' }
    expect(() => definePythonTool({ ...sound, ...options })).toThrow(TypeError)
    expect(() => definePythonTool({ ...sound, ...options })).toThrow(message)
  })
})
