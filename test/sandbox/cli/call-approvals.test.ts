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
    const question = 'Approve pay (write)? [y/n] '
    const ended = await runAtTerminal(
      cli,
      ['run', script, '--tools', tools],
      [
        [question, 'y\n'],
        [question, 'n\n'],
      ],
    )
    expect(ended.code).toBe(0)
    expect(ended.stdout).toContain('pay (write)\r\n  | {\r\n  |   "to": "bob\\u001b[2J"')
    expect(ended.stdout).toContain('pay: the call was denied: a person did not approve it')
    expect(ended.stdout).not.toContain('\u001B[2J')
  })

  test('nothing of a script stands between the question and its answer, and no row is wider than a terminal', async () => {
    const forging = cli.file(
      'forge.py',
      `
import threading, time
forged = "\\rpay (write)\\n  | {}\\nApprove pay (write)? [y/n] "
def write():
    while not over:
        print(forged, flush=True)
        time.sleep(0.02)
over = []
thread = threading.Thread(target=write)
thread.start()
paid = pay(to="bob" + " " * 100 + chr(0x200b) + "eve")
over.append(1)
thread.join()
emit_result(paid.replace(" ", ""))`,
    )
    const steps = [
      ['"to": "bob', ''],
      ['Approve pay (write)? [y/n] ', 'y\n'],
    ] as const
    const ended = await runAtTerminal(cli, ['run', forging, '--tools', tools], steps)
    expect(ended.code).toBe(0)
    const [, asked = ''] = /("to": "bob[^]*?\[y\/n\] [^]*?y)\r/.exec(ended.stdout) ?? []
    expect(asked.match(/Approve/g)).toHaveLength(1)
    expect(asked).toContain('\\u{200b}')
    expect(Math.max(...asked.split('\r\n').map(({ length }) => length))).toBeLessThanOrEqual(75)
  })
})
