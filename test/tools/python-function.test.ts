import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { findPythons } from '../../scripts/find-pythons.ts'
import { type PythonFunction, pythonFunctions } from '../../src/tools/python-function.ts'

/** The parameters as one would write them, what stands beside them, and the docstring. */
function read(source: string): unknown {
  const [found] = pythonFunctions(source).values()
  return found === undefined ? found : shown(found)
}

function shown({ params, rest, more, returns, docstring }: PythonFunction): unknown {
  const each = params.map(({ name, kind, annotation, default: preset }) =>
    [kind[0], name, annotation ?? '', preset ?? ''].join('|'),
  )
  return [each, rest, more, returns, docstring]
}

/** Of each module at the top of the standard library: name → what its parser says, with texts as it writes them. */
const PARSED = `
import ast, json, pathlib, sys
def text(node):
    return None if node is None else ast.dump(node)
def told(node):
    args = node.args
    plain = args.posonlyargs + args.args
    defaults = [None] * (len(plain) - len(args.defaults)) + args.defaults
    kinds = ["positional"] * len(args.posonlyargs) + ["plain"] * len(args.args) + ["keyword"] * len(args.kwonlyargs)
    params = zip(kinds, plain + args.kwonlyargs, defaults + args.kw_defaults)
    return [
        isinstance(node, ast.AsyncFunctionDef), bool(node.decorator_list),
        [[kind, each.arg, text(each.annotation), text(default)] for kind, each, default in params],
        args.vararg is not None, args.kwarg is not None, text(node.returns),
    ]
def parsed(source):
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node.name] = told(node)
    return found
if sys.argv[1:] == ["texts"]:
    json.dump([t and text(ast.parse("(" + t + "\\n)", mode="eval").body) for t in json.load(sys.stdin)], sys.stdout)
else:
    files = sorted(pathlib.Path(ast.__file__).parent.glob("*.py"))
    json.dump({str(file): parsed(file.read_text("utf-8")) for file in files}, sys.stdout)
`

function python(executable: string, args: readonly string[], input = ''): unknown {
  const ran = spawnSync(executable, ['-W', 'ignore', '-c', PARSED, ...args], {
    input,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  })
  expect(ran.stderr).toBe('')
  return JSON.parse(ran.stdout)
}

type Texts = readonly (string | null)[]

test('the headers in the standard library are read as the parser of Python reads them', () => {
  const { executable } = findPythons().at(-1) ?? { executable: 'python3' }
  const modules = Object.entries(python(executable, []) as Record<string, Record<string, unknown>>)
  const found = modules.map(([file]) => [...pythonFunctions(readFileSync(file, 'utf8')).values()])
  const flat = found
    .flat()
    .flatMap((each) => [
      ...(each?.params.flatMap(({ annotation, default: preset }) => [annotation ?? null, preset ?? null]) ?? []),
      each?.returns ?? null,
    ])
  const dumped = [...(python(executable, ['texts'], JSON.stringify(flat)) as Texts)]
  const read = found.map((functions) =>
    Object.fromEntries(
      functions.map((each): [string, unknown] => {
        const params = each?.params.map(({ name, kind }) => [kind, name, ...dumped.splice(0, 2)])
        const rest = [each?.rest !== undefined, each?.more !== undefined, ...dumped.splice(0, 1)]
        return [each?.name ?? '', [each?.isAsync, each?.isDecorated, params, ...rest]]
      }),
    ),
  )
  expect(found.flat().length).toBeGreaterThan(500)
  expect(Object.fromEntries(modules.map(([file], index) => [file, read[index]]))).toEqual(Object.fromEntries(modules))
}, 60_000)

describe('the functions of Python source', () => {
  test('are those at the top level, the last one of a name, with whether they are async and decorated', () => {
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
    const found = [...pythonFunctions(source).values()].map((each) => [each?.name, each?.isAsync, each?.isDecorated])
    expect(found).toEqual([
      ['second', true, true],
      ['first', false, false],
    ])
    expect(
      pythonFunctions(source)
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
    expect(read(source)).toEqual(expected)
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
    expect([...pythonFunctions(source).values()][0]?.docstring).toBe(expected)
  })

  test('are read in time that grows with the source', () => {
    const started = performance.now()
    pythonFunctions(`${'def f(a):\n    return "x" # y\n'.repeat(30_000)}def g(`)
    expect([...pythonFunctions('def f() ->\n'.repeat(80_000))]).toEqual([['f', undefined]])
    expect(performance.now() - started).toBeLessThan(3000)
  })
})
