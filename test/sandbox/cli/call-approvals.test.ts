import { afterAll, describe, expect, test } from 'vitest'
import { makeCli } from '../../support/cli/sandglass.ts'
import { runAtTerminal } from '../../support/cli/terminal.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())
const tools = cli.file(
  'tools.mjs',
  `export default [{
  name: 'pay', description: '', effect: 'write', secrets: [], approve: true,
  input: { type: 'object', properties: { to: { type: 'string' } } },
  execute: ({ to }) => 'paid ' + to,
}]`,
)
const script = cli.file(
  'pay.py',
  `
lines = []
for to in ("bob\\x1b[2J", "eve"):
    try:
        lines.append(pay(to=to))
    except ToolError as error:
        lines.append(str(error))
emit_result(lines)`,
)

describe.skipIf(skip).concurrent('a tool whose calls need approval', () => {
  test('is denied at once without a terminal, with the reason', async () => {
    const { code, stdout, stderr } = await cli.run(['run', script, '--tools', tools])
    const reason = 'it needs the approval of a person, and there is no terminal to ask at'
    const denied = `pay: the call was denied: ${reason}`
    expect([code, JSON.parse(stdout)]).toEqual([0, [denied, denied]])
    expect(stderr).toContain(`sandglass: pay: denied: ${reason}`)
  })

  test('asks at a terminal, which shows the arguments without control characters', async () => {
    const question = 'Approve this call? [y/n] '
    const ended = await runAtTerminal(
      cli,
      ['run', script, '--tools', tools],
      [
        [question, 'y\n'],
        [question, 'n\n'],
      ],
    )
    expect(ended.code).toBe(0)
    expect(ended.stdout).toContain('pay (write) {')
    expect(ended.stdout).toContain('pay: the call was denied: a person did not approve it')
    expect(ended.stdout).not.toContain('\u001B[2J')
  })
})
