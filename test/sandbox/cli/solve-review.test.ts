import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Proposal } from '../../../src/review.ts'
import { type CommandResult, lastLine, linesOf } from '../../support/cli/sandglass.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { makeSolveCommand } from './solve-command.ts'
import { RIGHT_SCRIPT } from './solve-modules.ts'

const { skip } = await requireLocalEngine()
const command = makeSolveCommand()
afterAll(() => command[Symbol.dispose]())
const { cli, tools: TOOLS, right: RIGHT } = command

type Answer = (id: string) => string

const decide =
  (decision: string, more: object = {}): Answer =>
  (id) =>
    JSON.stringify({ id, decision, by: 'ann', ...more })

/** Solves a task whose n-th proposal gets the n-th answers; stdin ends after the last. */
async function review(...answers: readonly (readonly Answer[])[]): Promise<CommandResult> {
  const args = ['solve', 'Add up', '--model', RIGHT, '--tools', TOOLS, '--json', '--review', 'always']
  const running = cli.start(args, { XDG_STATE_HOME: join(cli.directory, 'reviewed') })
  for (const [index, lines] of answers.entries()) {
    while (proposals(running.stdout()).length <= index) await once(running.child.stdout, 'data')
    const id = proposals(running.stdout())[index]?.id ?? ''
    // In one piece: the task may end soon after the first of them.
    running.child.stdin.write(lines.map((line) => `${line(id)}\n`).join(''))
  }
  running.child.stdin.end()
  return running.ended
}

function proposals(stdout: string): Pick<Proposal, 'id' | 'script' | 'tools' | 'diff'>[] {
  const lines = stdout.split('\n').filter((line) => line.includes('"type":"proposal"') && line.endsWith('}'))
  return lines.map((line) => JSON.parse(line) as Proposal)
}

describe.skipIf(skip)('solve --review always', () => {
  test('shows each script as a line, and runs what is accepted', async () => {
    const ended = await review([decide('respond', { text: 'again' })], [decide('accept'), decide('reject')])
    const late = 'line 3 of stdin is not a decision: nothing waits for one'
    expect([ended.code, ended.stderr]).toEqual([0, `sandglass: ${late}\n`])
    expect(lastLine(ended)).toMatchObject({ type: 'solve_result', status: 'completed', final_data: { total: 200 } })
    expect(linesOf(ended).slice(0, -1)).toMatchObject([
      { type: 'proposal', script: RIGHT_SCRIPT, tools: [{ name: 'search', effect: 'read' }], diff: null },
      { type: 'proposal', script: RIGHT_SCRIPT, diff: expect.any(String) as string },
    ])
    const shown = await cli.run(['show', 'last', '--json'], {
      env: { XDG_STATE_HOME: join(cli.directory, 'reviewed') },
    })
    expect(lastLine(shown)).toMatchObject({
      attempts: [
        { status: 'not-accepted', reviews: [{ decision: { decision: 'respond', text: 'again', by: 'ann' } }] },
        { status: 'completed', reviews: [{ decision: { decision: 'accept', script: null } }] },
      ],
    })
  })

  test('runs the script of an edit, and tells each line that is no decision', async () => {
    const ended = await review([
      () => 'yes',
      () => decide('accept')('other'),
      decide('edit'),
      decide('respond'),
      decide('reject', { script: 'x' }),
      decide('perhaps'),
      (id) => `{"id":"${id}","decision":"reject","text":"\\"a\\": b","decision":"accept"}`,
      decide('respond', { text: 'x'.repeat(20_001) }),
      decide('edit', { script: 'emit_result(7)' }),
    ])
    expect([ended.code, lastLine(ended).final_data]).toEqual([0, 7])
    const told = ended.stderr.trimEnd().split('\n')
    expect(told.map((line) => line.replace(/^sandglass: line \d of stdin is not a decision: /, ''))).toMatchObject([
      expect.stringContaining('not valid JSON'),
      expect.stringContaining('it is about "other"'),
      'edit needs the changed script',
      'respond needs a text for the model',
      'reject takes no script',
      'decision: "perhaps" is not one of accept, edit, respond, reject',
      'it has a key more than once',
      'its text is longer than 20000 characters',
    ])
  })

  test('ends with a rejection, and with the end of stdin, before anything ran', async () => {
    const rejected = await review([decide('reject', { text: 'too much' })])
    expect([rejected.code, lastLine(rejected)]).toMatchObject([
      130,
      { status: 'cancelled', error: 'rejected by ann: too much', tool_calls: 0, attempts: 1 },
    ])
    const left = await review([])
    expect([left.code, lastLine(left)]).toMatchObject([7, { status: 'infrastructure', tool_calls: 0 }])
    expect(lastLine(left).error).toContain('the review failed: stdin ended before a decision about the proposal ')
  })
})
