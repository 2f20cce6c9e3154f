import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { findPythons } from '../../../scripts/find-pythons.ts'
import { SCRIPT_HELPERS } from '../../../src/protocol/index.ts'

const LOOK = `
import inspect, json
from sandglass_harness.check import tools
from sandglass_harness.script import runtime, tool_functions
always = {name: value for name, value in runtime._fresh_globals({}, {}).items() if not name.startswith("__")}
with_tools = tool_functions.make_functions([], None)
def signature_of(name, value):
    return name if isinstance(value, type) else name + str(inspect.signature(value))
class Walk: pass
def known(signatures):
    return tools.Known(Walk(), names=[], tools=signatures, allows=lambda _: True, builtins=set()).names
tool = {"name": "a_tool", "params": [], "more": False, "schemas": {}, "result": True}
print(json.dumps({
    'always': {name: signature_of(name, value) for name, value in always.items()},
    'tools': {name: signature_of(name, value) for name, value in with_tools.items()},
    'checkerAlways': sorted(known([])),
    'checkerTools': sorted(known([tool]) - known([]) - {"a_tool"}),
}))
`

let look: Readonly<Record<string, unknown>>

beforeAll(() => {
  const { executable } = findPythons()[0] ?? { executable: 'python3' }
  const cwd = join(import.meta.dirname, '../../../harness')
  const run = spawnSync(executable, ['-B', '-c', LOOK], { cwd, encoding: 'utf8' })
  if (run.status !== 0) throw new Error(run.stderr)
  look = JSON.parse(run.stdout) as typeof look
})

test('the harness gives scripts the helpers of the table, and its checker knows them', () => {
  const those = (when: string) => Object.entries(SCRIPT_HELPERS).filter(([, helper]) => helper.when === when)
  const signatures = (when: string) => Object.fromEntries(those(when).map(([name, { signature }]) => [name, signature]))
  const names = (when: string) =>
    those(when)
      .map(([name]) => name)
      .toSorted()
  expect(look).toEqual({
    always: signatures('always'),
    tools: signatures('tools'),
    checkerAlways: names('always'),
    checkerTools: names('tools'),
  })
})
