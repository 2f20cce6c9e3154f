import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  definePythonTool,
  defineTool,
  prepareTools,
  type PythonTool,
  type Tool,
  ToolRegistry,
  type ToolsInput,
} from '../../../src/tools/index.ts'

function tool(name: string, more: Partial<Tool> = {}): Tool {
  return defineTool({ name, description: name, input: z.object({ a: z.int() }), execute: () => name, ...more })
}

const python = (name: string, body = 'pass'): PythonTool =>
  definePythonTool({ source: `def ${name}(): ${body}`, description: name })

const names = (given: ToolsInput): string[] => [...prepareTools(given).tools.keys()]

describe('a tool set', () => {
  test('has tools by their names in scripts, and lists those whose name changed', () => {
    const set = prepareTools([tool('get-user'), tool('search'), tool('class')])
    expect([...set.tools.keys()]).toEqual(['get_user', 'search', 'class_'])
    expect(set.signatures.map(({ name }) => name)).toEqual(['get_user', 'search', 'class_'])
    expect(set.renamed).toEqual([
      { from: 'get-user', to: 'get_user' },
      { from: 'class', to: 'class_' },
    ])
  })

  test('is made from a list, a record, a registry, or a set', () => {
    const [a, b] = [tool('a'), tool('b')]
    const set = prepareTools([a, b])
    expect([
      names([a, b]),
      names({ x: a, 'y-z': b }),
      names(new ToolRegistry().register(a)),
      names(set),
      names([]),
    ]).toEqual([['a', 'b'], ['x', 'y_z'], ['a'], ['a', 'b'], []])
  })

  test('is made once for the same tools, and again when they change', () => {
    const list = [tool('a'), tool('b')]
    const record: Record<string, Tool> = { a: tool('a') }
    const registry = new ToolRegistry().register(tool('a'))
    const before = [list, record, registry].map((given) => prepareTools(given))
    expect([list, record, registry].map((given, index) => prepareTools(given) === before[index])).toEqual([
      true,
      true,
      true,
    ])
    expect(before.map((set) => prepareTools(set) === set)).toEqual([true, true, true])
    list.pop()
    record['c'] = tool('c')
    registry.register(tool('b'))
    expect([list, record, registry].map(names)).toEqual([['a'], ['a', 'c'], ['a', 'b']])
  })

  test('has a digest that depends on what a script sees, and not on the order', () => {
    const digest = (...tools: Tool[]): string => prepareTools(tools).digest
    expect(digest(tool('a'), tool('b'))).toBe(digest(tool('b'), tool('a')))
    const different = [digest(tool('a')), digest(tool('b')), digest(tool('a', { effect: 'read' })), digest()]
    expect(new Set([...different, digest(tool('a', { description: 'other' }))]).size).toBe(5)
    const [one, two] = [python('a', 'return 1'), python('a', 'return 2')].map((each) => prepareTools([each]).digest)
    expect(one).not.toBe(two)
    expect(prepareTools([python('a'), tool('b')]).digest).toBe(prepareTools([tool('b'), python('a')]).digest)
  })
})

test('shows Python tools and tools of the host to the model and to the checker', () => {
  const set = prepareTools([python('b'), tool('a')])
  expect([[...set.tools.keys()], [...set.pythonTools.keys()]]).toEqual([['a'], ['b']])
  expect(set.checked.map(({ name }) => name)).toEqual(['b', 'a'])
  expect(set.stubs()).toMatch(/^def b\(\):\n {4}"""\n {4}b\n {4}"""\n\ndef a\(a: int\)/)
  const long = prepareTools([python('b'), tool('a', { description: 'word '.repeat(50) })])
  expect(long.stubs(260)).toMatch(/\n# a\(a\): word [^\n]*\n\ndef b\(\):/)
  expect(prepareTools({ b: python('b') }).pythonTools.size).toBe(1)
})

describe('rejects values that are not tool sets', () => {
  test.each<[unknown, string]>([
    [undefined, 'tools: expected a list of tools or a tool set'],
    ['search', 'tools: expected a list of tools or a tool set'],
    [[null], 'tools: null is not a tool; make it with defineTool, the AI SDK or LangChain'],
    [{ a: 5 }, 'tools: "a" is not a tool; make it with defineTool, the AI SDK or LangChain'],
    [[{ name: 'x' }], 'tools: "x" is not a tool; make it with defineTool, the AI SDK or LangChain'],
    [[tool('a-b'), tool('a.b')], 'tools: "a-b" and "a.b" would both become the function a_b; rename one'],
    [[tool('a'), tool('\uFF41')], 'tools: "a" and "\uFF41" would both become the function a; rename one'],
    [[tool('a'), python('a')], 'tools: "a" and the Python tool "a" would both become the function a; rename one'],
    [
      [python('a'), tool('\uFF41')],
      'tools: the Python tool "a" and "\uFF41" would both become the function a; rename one',
    ],
    [{ b: python('a') }, 'tools: "b" is the Python tool "a", which keeps the name of its function'],
    [[tool('emit_result')], 'the tool name "emit_result" is reserved for a helper of scripts; rename the tool'],
  ])('%j', (given, message) => {
    expect(() => prepareTools(given as ToolsInput)).toThrow(new TypeError(message))
  })
})

test("names of JavaScript's Object.prototype are ordinary names", () => {
  const set = prepareTools([tool('constructor'), tool('toString'), tool('hasOwnProperty')])
  expect([...set.tools.keys()]).toEqual(['constructor', 'toString', 'hasOwnProperty'])
  expect(set.tools.get('valueOf')).toBe(undefined)
})
