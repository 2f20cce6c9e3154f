import { spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, prepareTools, type Tool } from '../../../src/tools/index.ts'

const order = z.object({ id: z.string(), total: z.number().describe('In EUR') }).meta({ title: 'Order' })
const search = defineTool({
  name: 'search',
  description: 'Finds orders.',
  input: z.object({ query: z.string(), limit: z.int().default(10), tag: z.string().default("it's") }),
  output: z.array(order),
  execute: () => [],
})
const fetchOrder = defineTool({
  name: 'fetch',
  description: 'One order.\n\nIt may be an old one.',
  input: z.looseObject({ id: z.string(), at: z.iso.date().nullish() }),
  output: order,
  execute: () => ({ id: '', total: 0 }),
})

const ORDER = 'class Order(TypedDict):\n    id: str\n    total: float  # In EUR'
const SEARCH = `def search(query: str, limit: int = 10, tag: str = "it's") -> list[Order]:\n    """\n    Finds orders.\n    """`
const FETCH =
  'def fetch(id: str, at: str | None = ..., **more) -> Order:\n    """\n    One order.\n\n    It may be an old one.\n\n' +
  `    Args:\n        at: format: date\n    """`
const HEAD = '# 2 functions. describe_tool("name") returns the signature and description of any of them.'

describe('the stubs of a tool set', () => {
  const set = prepareTools([search, fetchOrder])
  const stubs = (maxChars?: number): string => set.stubs(maxChars)

  test('are all functions in full, with each class once', () => {
    expect(stubs()).toBe(`${ORDER}\n\n${SEARCH}\n\n${FETCH}`)
    expect(stubs(stubs().length)).toBe(stubs())
  })

  test('are in full for functions that fit, and one line for each of the others', () => {
    const listed = `${HEAD}\n# fetch(id, at=…, **more): One order.`
    const budget = stubs().length - 1
    expect(stubs(budget)).toBe(`${listed}\n\n${ORDER}\n\n${SEARCH}`)
    expect(stubs(200)).toBe(
      `${HEAD}\n# search(query, limit=…, tag=…): Finds orders.\n# fetch(id, at=…, **more): One order.`,
    )
  })

  test('are names, or as many names as fit, if the budget is too small', () => {
    expect(stubs(HEAD.length + 20)).toBe(`${HEAD}\n# search\n# fetch`)
    const many = prepareTools(Array.from({ length: 40 }, (_, index) => tool(`tool_${index}`)))
    const head = HEAD.replace('2', '40')
    const short = many.stubs(head.length + 60)
    expect(short).toBe(`${head}\n# tool_0\n# tool_1\n# tool_2\n# tool_3\n# … and 36 more`)
  })

  test.each([0, 1, 50, 90, 100, 120, 150, 200, 300, 400, 500, 600, 700])(
    'never have more than %i characters',
    (most) => {
      expect(stubs(most).length).toBeLessThanOrEqual(most)
    },
  )
})

test('tools with different classes of one title have separate classes', () => {
  const other = z.object({ sku: z.string() }).meta({ title: 'Order' })
  const set = prepareTools([
    search,
    defineTool({ name: 'ship', description: 'Ships.', input: z.object({ order: other }), execute: () => null }),
  ])
  expect(set.stubs()).toBe(
    `${ORDER}\n\n${SEARCH}\n\nclass ShipOrder(TypedDict):\n    sku: str\n\n` +
      `def ship(order: ShipOrder) -> Any:\n    """\n    Ships.\n    """`,
  )
})

test('stubs are valid Python and define the listed functions', () => {
  const Node: z.ZodType = z.object({
    value: z.number(),
    get next() {
      return Node.nullable()
    },
    'x-from': z.literal(['a"b', "it's", 'new\nline']).optional(),
  })
  const hostile = '""" \\ \\N{x} \\x """\u0000\u202E\r\n\\'
  const tools = [
    search,
    fetchOrder,
    defineTool({
      name: 'class',
      description: hostile,
      input: z.object({
        from: z.string().default('\\ \' " \n\u0000 ☃ \u{1F600}').describe(hostile),
        lambda: Node.describe(hostile).optional(),
        'größe-x': z.tuple([z.int(), z.string()]).default([1e21, 'x']),
        deep: z.record(z.string(), z.union([z.boolean(), z.null(), z.number()])).default({ a: true, b: null, c: 1e-7 }),
      }),
      output: z.array(Node),
      execute: () => [],
    }),
  ]
  const script = `
import ast, sys, typing
source = sys.stdin.read()
ast.parse(source)
space = {name: getattr(typing, name, None) for name in ("Any", "Literal", "TypedDict")}
space["NotRequired"] = getattr(typing, "NotRequired", typing.Optional)
exec("from __future__ import annotations\\n" + source, space)
defaults = dict(zip(space["class_"].__code__.co_varnames, space["class_"].__defaults__))
print(sorted(name for name in space if not name.startswith("__") and name not in ("Any", "Literal", "TypedDict", "NotRequired", "annotations")))
print(ascii(defaults))
`
  const python = spawnSync('python3', ['-c', script], { input: prepareTools(tools).stubs(), encoding: 'utf8' })
  expect(python.stderr).toBe('')
  expect(python.stdout.split('\n')).toEqual([
    "['ClassLambda', 'ClassLambdaNext', 'ClassResultItem', 'Order', 'class_', 'fetch', 'search']",
    String.raw`{'from_': '\\ \' " \n\x00 \u2603 \U0001f600', 'lambda_': None, 'größe_x': [1e+21, 'x'], 'deep': {'a': True, 'b': None, 'c': 1e-07}}`.replace(
      'größe',
      String.raw`gr\xf6\xdfe`,
    ),
    '',
  ])
})

function tool(name: string): Tool {
  return defineTool({ name, description: 'Does it.', input: z.object({}), execute: () => null })
}
