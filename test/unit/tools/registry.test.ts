import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ToolResponses } from '../../../src/code-agent/index.ts'
import {
  definePythonTool,
  defineTool,
  dependenciesOf,
  parametersSchema,
  prepareTools,
  type PythonToolOptions,
  type Tool,
  ToolRegistry,
  withToolApproval,
} from '../../../src/tools/index.ts'

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
  const fillRegistry = (order: (list: readonly (() => unknown)[]) => readonly (() => unknown)[]): ToolRegistry => {
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
  const registry = fillRegistry((steps) => steps)

  test.each([
    ['toolApproval', withToolApproval(registry, { mail: 'denied' })],
    ['the markers of a code agent', new ToolResponses().wrap(registry)],
  ])('keeps its packages under %s', (_, tools) => {
    expect(dependenciesOf(tools)).toEqual(['duckdb', 'numpy', 'pandas>=2'])
    expect([...prepareTools(tools).tools.keys()]).toEqual(['orders', 'mail'])
    expect([...prepareTools(tools).pythonTools.keys()]).toEqual(['clean'])
  })

  test('lists the needs of each sandbox: its tools, and the union of their dependencies and secrets', () => {
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
    const set = prepareTools(registry.forSandbox('data'))
    expect([[...set.tools.keys()], [...set.pythonTools.keys()], set.requiredSecrets]).toEqual([
      ['orders'],
      ['clean'],
      ['S3_KEY'],
    ])
    expect(prepareTools(registry).sources).toEqual([{ name: 'clean', source: clean.source, stub: clean.stub }])
  })

  test('has one digest for the same tools in any order, and another for others', () => {
    const turned = fillRegistry((steps) => steps.toReversed())
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

  test('rejects a duplicate name in a sandbox, and values that are not tools', () => {
    expect(() => fillRegistry((steps) => steps).register(host('mail'))).toThrow(
      new TypeError('ToolRegistry: the sandbox "default" already has a tool "mail"; rename one of them'),
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
    [
      [{ name: 'a', type: 'text' }],
      'parameters: "a" has the unknown type "text"; use one of str, int, float, bool, list, dict, any, string, integer, number, boolean, array, object',
    ],
    [[{ name: '', type: 'str' }], 'parameters: "" is not a valid parameter name'],
    [[{ name: '__proto__', type: 'str' }], 'parameters: "__proto__" is not a valid parameter name'],
    [
      [
        { name: 'a', type: 'str' },
        { name: 'a', type: 'int' },
      ],
      'parameters: "a" is a duplicate name',
    ],
    [
      [{ name: 'a', type: 'str', options: ['x'], default: 'y' }],
      `parameters: the default 'y' of "a" is not one of its options`,
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

  test('has an ordinary signature', () => {
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
      doc: "Cleans rows.\n\nArgs:\n    rows: Rows to clean.\n    how: for example 'well'",
    })
  })

  test('may be in a file, whose name is its name', () => {
    const tool = definePythonTool({ file: join(directory, 'shout.py'), description: 'Shouts.' })
    expect([tool.name, tool.source.length, tool.stub]).toEqual([
      'shout',
      64,
      'def shout(text):\n    """\n    Shouts.\n    """',
    ])
  })

  test('a file that cannot be read, or that lacks the function, is named with its path', () => {
    const [gone, latin, other] = ['gone.py', 'latin.py', 'other-tools.py'].map((name) => join(directory, name)) as [
      string,
      string,
      string,
    ]
    writeFileSync(latin, Buffer.from('def latin(): "\u00E9"\n', 'latin1'))
    writeFileSync(other, 'def one(): "One"\ndef two(): "Two"\n')
    const define =
      (file: string, more: Partial<PythonToolOptions> = {}) =>
      () =>
        definePythonTool({ file, ...more })
    expect(define(gone)).toThrow(new RegExp(`^definePythonTool: the file ${gone} cannot be read: ENOENT`))
    expect(define(directory)).toThrow(new RegExp(`^definePythonTool: the file ${directory} cannot be read: EISDIR`))
    expect(define(latin)).toThrow(new RegExp(`^definePythonTool: the file ${latin} cannot be read: .*not valid`))
    expect(define(other)).toThrow(
      `definePythonTool: "other-tools" is not a Python function name (of ${other}); pass the option name`,
    )
    expect(define(other, { name: 'three' })).toThrow(
      `definePythonTool: ${other} defines no function three; it defines one, two`,
    )
    expect(define(other, { name: 'two' })().description).toBe('Two')
  })

  test('shows the options of a parameter, whatever its type in the source', () => {
    const tool = definePythonTool({
      source: 'def rank(how: str, by: Mode = "asc", top: str = None, least: float = 0.5, kind="a"): "Ranks."\n',
      parameters: [
        { name: 'how', type: 'str', options: ['fast', 'well'] },
        { name: 'by', type: 'str', default: 'asc', options: ['asc', 'desc'] },
        { name: 'top', type: 'str', required: false, options: ['x', 'y'] },
        { name: 'least', type: 'float', default: 0.5, options: [0.5, 1.5] },
        { name: 'kind', type: 'str', default: 'a', options: ['a', 'b'], description: 'Its kind.' },
      ],
    })
    const stub =
      'def rank(how: Literal["fast", "well"], by: Literal["asc", "desc"] = "asc", top: Literal["x", "y"] | None = None, ' +
      'least: float = 0.5, kind: Literal["a", "b"] = "a"):\n    """\n    Ranks.\n\n' +
      '    Args:\n        least: one of 0.5, 1.5\n        kind: Its kind.\n    """'
    expect([tool.stub, prepareTools([tool]).stubs()]).toEqual([stub, stub])
    expect(tool.checked.params.map(({ type }) => type)).toEqual([
      'Literal["fast", "well"]',
      'Literal["asc", "desc"]',
      'Literal["x", "y"] | None',
      'float',
      'Literal["a", "b"]',
    ])
  })

  test('has the parameters of its source, with the types and texts of the list', () => {
    const source = 'async def find(query, *, limit: int = 5, near=None, key=len):\n    """Finds rows."""\n'
    const parameters = [
      { name: 'query', type: 'str', description: 'What to find.' },
      { name: 'near', type: 'list[float]', required: false },
    ]
    const { stub, checked } = definePythonTool({ source, description: 'Search.', parameters })
    expect(stub).toBe(
      'def find(query: str, *, limit: int = 5, near: list[float] | None = None, key=len):\n    """\n' +
        '    Search.\n\n    Finds rows.\n\n    Args:\n        query: What to find.\n    """',
    )
    const keyword = { kind: 'keyword', required: false, nullable: true }
    expect([checked.params, checked.rest, checked.awaits, checked.more]).toEqual([
      [
        { name: 'query', type: 'str', required: true, nullable: false },
        { name: 'limit', type: 'int', ...keyword, default: 5 },
        { name: 'near', type: 'list[float] | None', ...keyword, nullable: false, default: null },
        { name: 'key', type: 'Any', ...keyword },
      ],
      false,
      true,
      false,
    ])
  })

  test('with a decorated function accepts any arguments in the checker', () => {
    const { checked, stub } = definePythonTool({ source: '@wrapped\ndef f(a): "F"\n' })
    expect([checked.params, checked.more, checked.rest, checked.awaits]).toEqual([[], true, true, false])
    expect(stub).toBe('def f(a):\n    """\n    F\n    """')
  })

  test.each<[Partial<PythonToolOptions>, RegExp]>([
    [{ source: undefined as never }, /^definePythonTool: give either source or file$/],
    [{ file: 'x.py' }, /^definePythonTool: give either source or file$/],
    [{ source: 'x = 1' }, /^definePythonTool: the source defines no function$/],
    [{ name: 'g' }, /^definePythonTool: the source defines no function g; it defines f$/],
    [{ source: 'def print(): pass' }, /^the tool name "print" is reserved for a builtin of Python/],
    [{ name: 'a-b' }, /^definePythonTool: "a-b" is not a Python function name$/],
    [
      { description: undefined as never },
      /^definePythonTool f: pass a description as text, or add a docstring to the function$/,
    ],
    [
      { source: 'def f(a' },
      /^definePythonTool: the source is not valid Python: the header of the function f does not end$/,
    ],
    [
      { source: `def f(): pass\n#${'x'.repeat(1 << 20)}` },
      /^definePythonTool: the source has 1048591 bytes; at most 1048576/,
    ],
    [
      { parameters: [{ name: 'b', type: 'int' }] },
      /^definePythonTool f: the function has no parameter "b": it has none$/,
    ],
    [
      { secrets: ['A B'] },
      /^definePythonTool f: secrets must be a list of names of environment variables \(letters, digits and "_", no digit first\)$/,
    ],
    [{ source: 5 as never }, /^definePythonTool: source must be text, not number$/],
    [{ param: [] } as never, /^definePythonTool: unknown option "param"\./],
  ])('%j is refused', (options, message) => {
    const sound = { source: 'def f(): pass', description: 'F' }
    expect(() => definePythonTool({ ...sound, ...options })).toThrow(TypeError)
    expect(() => definePythonTool({ ...sound, ...options })).toThrow(message)
  })
})
