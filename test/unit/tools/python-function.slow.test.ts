import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { findPythons } from '../../../scripts/find-pythons.ts'
import { parsePythonFunctions } from '../../../src/tools/python-function.ts'

/** Python that prints, for each top-level module of the standard library, the functions that Python's own parser finds. */
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
  const found = modules.map(([file]) => [...parsePythonFunctions(readFileSync(file, 'utf8')).values()])
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
})
