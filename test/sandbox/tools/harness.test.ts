import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, prepareTools } from '../../../src/tools/index.ts'

const tools = [
  defineTool({
    name: 'search-orders',
    description: 'Finds orders.\u2028By their text.',
    input: z.object({
      query: z.string().describe('Words """ \\ to look for.'),
      from: z.iso.date().optional(),
      limit: z.int().default(10),
      tag: z.string().default('it\'s "x"\n\u00E9\u{1F600}'),
      near: z.object({ lat: z.number(), lon: z.number() }).nullable().optional(),
      scale: z.number().default(1e-7),
      options: z.record(z.string(), z.boolean()).default({ a: true }),
    }),
    output: z.array(z.object({ id: z.string() })),
    execute: () => [],
  }),
  defineTool({
    name: 'anything',
    description: 'Takes all.',
    input: z.looseObject({ a: z.unknown() }),
    execute: () => 1,
  }),
  defineTool({ name: 'nothing', description: '', input: z.object({}), execute: () => 1 }),
]

const SCRIPT = `
import inspect, json, sys
sys.path.insert(0, sys.argv[1])
from sandglass_harness.script import tool_functions
signatures = json.load(sys.stdin)
sent = []
class Bridge:
    def call(self, name, args): sent.append([name, args])
made = tool_functions.make_functions(signatures, Bridge())
made["search_orders"]("x", "2026-01-01", near=None)
made["search_orders"](query="x", from_=None, limit=3)
made["anything"](a=1, b=2)
made["nothing"]()
print(json.dumps({
  "texts": [made["describe_tool"](signature["name"]) for signature in signatures],
  "docs": [made[signature["name"]].__doc__ for signature in signatures],
  "sent": sent,
}))
`

test('the harness makes the function of the stub from a signature, and sends the keys of the schema', () => {
  const { signatures, stubs } = { signatures: prepareTools(tools).signatures, stubs: prepareTools(tools).stubs() }
  const harness = join(import.meta.dirname, '../../../harness')
  const python = spawnSync('python3', ['-c', SCRIPT, harness], { input: JSON.stringify(signatures), encoding: 'utf8' })
  expect(python.stderr).toBe('')
  const printed = JSON.parse(python.stdout) as { texts: string[]; docs: string[]; sent: unknown[] }
  expect(printed.texts.join('\n\n')).toBe(stubs.replace('r"""', '"""'))
  expect(printed.docs).toEqual(signatures.map(({ doc }) => doc))
  const tag = 'it\'s "x"\n\u00E9\u{1F600}'
  const rest = { tag, scale: 1e-7, options: { a: true } }
  expect(printed.sent).toEqual([
    ['search_orders', { query: 'x', from: '2026-01-01', limit: 10, near: null, ...rest }],
    ['search_orders', { query: 'x', limit: 3, ...rest }],
    ['anything', { a: 1, b: 2 }],
    ['nothing', {}],
  ])
})
