import { userInfo } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { type CommandResult, lastLine } from '../../support/cli/sandglass.ts'
import { runAtTerminal, type TerminalStep } from '../../support/cli/terminal.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { makeSolveCommand } from './solve-command.ts'

const { skip } = await requireLocalEngine()
const command = makeSolveCommand()
afterAll(() => command[Symbol.dispose]())
const { cli, tools, right } = command

const PROMPT = '[a]ccept, [e]dit, [r]espond, re[j]ect? '
const NAME = userInfo().username

/** Solves a task whose scripts a person reviews at a terminal. */
function review(
  state: string,
  steps: readonly TerminalStep[],
  env: Record<string, string> = {},
): Promise<CommandResult> {
  const args = ['solve', 'Add up', '--model', right, '--tools', tools, '--review', 'always']
  return runAtTerminal(cli, args, steps, { XDG_STATE_HOME: join(cli.directory, state), ...env })
}

async function recordOf(state: string): Promise<unknown> {
  return lastLine(await cli.run(['show', 'last', '--json'], { env: { XDG_STATE_HOME: join(cli.directory, state) } }))
}

describe.skipIf(skip).concurrent('solve --review always at a terminal', () => {
  test('runs the script that a person accepts, and not for keys typed before it was shown', async () => {
    const ended = await review('accepts', [
      ['', 'a\n'],
      [PROMPT, 'maybe\n'],
      ['Answer a, e, r or j.', ''],
      [PROMPT, 'a\n'],
    ])
    expect([ended.code, ended.stdout]).toMatchObject([0, expect.stringMatching(/search \(read\)[^]*"total": 200/)])
    expect(await recordOf('accepts')).toMatchObject({
      attempts: [{ status: 'completed', reviews: [{ decision: { decision: 'accept', by: NAME } }] }],
    })
  })

  test('runs what the editor leaves, and asks again where it leaves nothing new or fails', async () => {
    const editor = cli.file("a person's editor.sh", 'echo "emit_result(7)" > "$2"; test "$1" = -w')
    const steps: TerminalStep[] = [
      [PROMPT, 'e\n'],
      [PROMPT, 'a\n'],
    ]
    const edited = await review('edits', steps.slice(0, 1), { EDITOR: `sh "${editor}" -w` })
    expect([edited.code, edited.stdout]).toMatchObject([0, expect.stringMatching(/\n7\r?\n/)])
    expect(await recordOf('edits')).toMatchObject({
      attempts: [{ script: 'emit_result(7)', reviews: [{ decision: { script: 'emit_result(7)', by: NAME } }] }],
    })
    const same = await review('leaves', steps, { VISUAL: 'true' })
    expect([same.code, same.stdout]).toMatchObject([0, expect.stringContaining('The script is unchanged.')])
    const failed = await review('fails', steps, { EDITOR: 'false' })
    expect([failed.code, failed.stdout]).toMatchObject([
      0,
      expect.stringContaining('false: it ended with 1; set EDITOR to a program that edits a file'),
    ])
  })

  test('tells the model what a person responds, and ends with the reason of a rejection', async () => {
    const ended = await review('rejects', [
      [PROMPT, 'r\n'],
      ['To the model: ', 'Use fewer calls.\n'],
      [PROMPT, 'j\n'],
      ['Reason, for the record: ', 'too much\n'],
    ])
    expect([ended.code, ended.stdout]).toMatchObject([130, expect.stringContaining(`rejected by ${NAME}: too much`)])
    expect(await recordOf('rejects')).toMatchObject({
      attempts: [
        { reviews: [{ decision: { decision: 'respond', text: 'Use fewer calls.' } }] },
        { reviews: [{ decision: { decision: 'reject', text: 'too much' } }] },
      ],
    })
  })

  test('runs nothing after Ctrl-D and after Ctrl-C', async () => {
    const left = await review('leaves-it', [[PROMPT, '\u0004']])
    expect([left.code, left.stdout]).toMatchObject([7, expect.stringContaining('the terminal ended before a decision')])
    const cancelled = await review('cancels', [[PROMPT, '\u0003']])
    expect([cancelled.code, cancelled.stdout]).toMatchObject([130, expect.stringContaining('cancelled by Ctrl-C')])
    expect(await recordOf('cancels')).toMatchObject({ status: 'cancelled' })
  })
})
