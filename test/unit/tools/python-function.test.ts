import { describe, expect, test } from 'vitest'
import { type PythonFunction, parsePythonFunctions } from '../../../src/tools/python-function.ts'
import { measureBest } from '../../support/measure-best.ts'

/** Formats a function: its parameters as in Python, its attributes and its docstring. */
function readFunction(source: string): unknown {
  const [found] = parsePythonFunctions(source).values()
  return found === undefined ? found : format(found)
}

function format({ params, rest, more, returns, docstring }: PythonFunction): unknown {
  const each = params.map(({ name, kind, annotation, default: preset }) =>
    [kind[0], name, annotation ?? '', preset ?? ''].join('|'),
  )
  return [each, rest, more, returns, docstring]
}

describe('the functions of Python source', () => {
  test('are those at the top level, the last one of each name, marked if async or decorated', () => {
    const source = `"""
def not_this(): pass
"""
import x
def first(): pass
class C:
    def method(self): pass
call(
def_ = 1)
@cache  # twice
# and a comment
async  def second(a): pass
if x:
    def inner(): pass
def first(b): return f"{x}"
# def third(): pass
`
    const found = [...parsePythonFunctions(source).values()].map((each) => [
      each?.name,
      each?.isAsync,
      each?.isDecorated,
    ])
    expect(found).toEqual([
      ['second', true, true],
      ['first', false, false],
    ])
    expect(
      parsePythonFunctions(source)
        .get('first')
        ?.params.map(({ name }) => name),
    ).toEqual(['b'])
  })

  test.each<[string, unknown]>([
    ['def f(): pass', [[], undefined, undefined, undefined, '']],
    ['def f(a, b=1,): ...', [['p|a||', 'p|b||1'], undefined, undefined, undefined, '']],
    [
      'def f(a, /, b, *args: int, c, d: str = "x", **more: object) -> dict[str, "A:B"]: ...',
      [['p|a||', 'p|b||', 'k|c||', 'k|d|str|"x"'], '*args: int', '**more: object', 'dict[str, "A:B"]', ''],
    ],
    ['def f(a, *, b): ...', [['p|a||', 'k|b||'], undefined, undefined, undefined, '']],
    [
      "def f(a=(1, [2, {'x': ','}]), b=lambda x, y=1: (x, y), c: 'x=)' = ')'):\n  pass",
      [
        ["p|a||(1, [2, {'x': ','}])", 'p|b||lambda x, y=1: (x, y)', "p|c|'x=)'|')'"],
        undefined,
        undefined,
        undefined,
        '',
      ],
    ],
    [
      'def f[T: (int, str)](  # why, not )\n    a: list[\n        T\n    ],  # comment\n    b \\\n= 2,\n) -> T:\n    ...',
      [['p|a|list[ T ]|', 'p|b||2'], undefined, undefined, 'T', ''],
    ],
    ['def f(a', undefined],
    ['def f(a)', undefined],
    ['def f a', undefined],
    ['def f(a]): pass', undefined],
    ['def f(a="x): pass', undefined],
  ])('%j', (source, expected) => {
    expect(readFunction(source)).toEqual(expected)
  })

  test.each([
    ['def f(): "One."', 'One.'],
    ["def f():  # comment\n\n    # more\n    '''One.\n\n        Two\n      three.\n    '''\n", 'One.\n\n  Two\nthree.'],
    ['def f():\n    r"""a\\nb"""', 'a\\nb'],
    ['def f():\n    "a\\nb \\"c\\" \\\\d"', 'a\nb "c" \\d'],
    ['def f():\n    f"no {docstring}"', ''],
    ['def f():\n    b"no docstring"', ''],
    ['def f():\n    return "no docstring"', ''],
  ])('%j has the docstring %j', (source, expected) => {
    expect([...parsePythonFunctions(source).values()][0]?.docstring).toBe(expected)
  })

  test('are read in time proportional to the source', () => {
    const read = (): void => {
      parsePythonFunctions(`${'def f(a):\n    return "x" # y\n'.repeat(5_000)}def g(`)
      expect([...parsePythonFunctions('def f() ->\n'.repeat(13_000))]).toEqual([['f', undefined]])
    }
    expect(measureBest(read, 1)).toBeLessThan(500)
  })
})
