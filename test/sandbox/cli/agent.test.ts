import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Proposal } from '../../../src/review/index.ts'
import { type CommandResult, type Line, lastLine, linesOf, makeCli } from '../../support/cli/sandglass.ts'
import { runAtTerminal, type TerminalStep } from '../../support/cli/terminal.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

const CLI_PAGE = join(import.meta.dirname, '../../../docs/cli.md')
const PROMPT = '[a]ccept, [e]dit, [r]espond, re[j]ect? '
const NAME = userInfo().username
const ORDERS = cli.file('orders.csv', 'id,total,paid\n1,120,yes\n2,80,no\n3,45,no\n')
const TOOLS = cli.file(
  'tools.mjs',
  `export default [{
    name: 'remind', description: 'Sends a reminder for an order.', effect: 'write', secrets: [],
    input: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] }, output: { type: 'string' },
    execute: ({ order }) => 'reminded ' + order,
  }]`,
)
/** A model that reads the file, then reminds, then answers. It tells what it was told by what it does. */
const MODEL = cli.file(
  'model.mjs',
  `const SUM = \`I add up what is not paid.
<execution-code>
import csv
rows = [row for row in csv.DictReader(open("orders.csv")) if row["paid"] == "no"]
print(sum(int(row["total"]) for row in rows), "open in", len(rows), "orders")
</execution-code>\`
const REMIND = \`<execution-code>
print(*[remind(order=order) for order in ("2", "3")])
open("reminded.txt", "a").write("2 3\\\\n")
</execution-code>\`
export default async (prompt) => {
  const text = prompt.includes('reminded 3') ? 'Two orders with 125 are open; I sent reminders.'
    : prompt.includes('125 open') || prompt.includes('Remind them') ? REMIND : SUM
  return { text, model: 'example', promptTokens: 100, completionTokens: 20 }
}`,
)

const ARGS = ['agent', 'Which orders are open?', '--model', MODEL, '--tools', TOOLS, '--file', ORDERS]

function atTerminal(
  state: string,
  steps: readonly TerminalStep[],
  args: readonly string[] = ARGS,
): Promise<CommandResult> {
  return runAtTerminal(cli, args, steps, stateIn(state))
}

function stateIn(state: string): Record<string, string> {
  return { XDG_STATE_HOME: join(cli.directory, state) }
}

function agentsIn(state: string): string {
  return join(cli.directory, state, 'sandglass/agents')
}

/** Starts the command with lines, and waits for its first proposal. */
async function startWithLines(state: string, args: readonly string[]) {
  const running = cli.start([...args, '--json'], stateIn(state))
  while (!running.stdout().includes('\n')) await once(running.child.stdout, 'data')
  return { ...running, proposal: JSON.parse(running.stdout().split('\n')[0] ?? '') as Proposal }
}

describe.skipIf(skip).concurrent('agent', () => {
  test('shows each script, runs what is accepted, and answers: the transcript of docs/cli.md', async () => {
    const ended = await atTerminal('transcript', [
      [PROMPT, 'a\n'],
      [PROMPT, 'r\n'],
      ['To the model: ', 'Remind them at once, please.\n'],
      [PROMPT, 'a\n'],
    ])
    const shown = ended.stdout
      .replaceAll('\r', '')
      // oxlint-disable-next-line no-control-regex -- what moves the cursor of the prompt
      .replaceAll(/\u001B\[\d*[A-Za-z]/g, '')
      .replaceAll(cli.directory, '/home/ann')
      .replaceAll(/\d{8}T\d{9}-[0-9a-f]{8}/g, '20261126T101500000-5f1e77a0')
      .replaceAll(/\d+\.\d ms/g, '0.3 ms')
    expect(ended.code).toBe(0)
    const page = readFileSync(CLI_PAGE, 'utf8')
    const [, transcript] = /<!-- transcript: agent -->\n\n```text\n\$ [^\n]*\n([^]*?)```/.exec(page) ?? []
    expect(shown.trim()).toBe(transcript?.trim())
  })

  test('continues after the end of its process with the same script, which runs once', async () => {
    const first = await startWithLines('killed', ['agent', 'Remind them', ...ARGS.slice(2)])
    first.child.kill('SIGKILL')
    await first.ended
    const [id = ''] = readdirSync(agentsIn('killed'))
    const again = await startWithLines('killed', ['agent', '--resume', id, '--model', MODEL, '--tools', TOOLS])
    expect(again.proposal).toMatchObject({ id: first.proposal.id, script: first.proposal.script })
    expect(again.proposal.tools).toEqual([{ name: 'remind', effect: 'write' }])
    again.child.stdin.write(`${JSON.stringify({ id: again.proposal.id, decision: 'accept', by: 'ann' })}\n`)
    const ended = await again.ended
    expect([ended.code, lastLine(ended)]).toMatchObject([
      0,
      {
        type: 'solve_result',
        status: 'completed',
        final_data: 'Two orders with 125 are open; I sent reminders.',
        tool_calls: 2,
      },
    ])
    expect(readFileSync(join(agentsIn('killed'), id, 'files/reminded.txt'), 'utf8')).toBe('2 3\n')
  })

  test('asks by lines about calls that need approval, and a denial is for the script', async () => {
    const source = readFileSync(TOOLS, 'utf8').replace("effect: 'write'", "effect: 'write', approve: true")
    const args = ['agent', 'Remind them', '--model', MODEL, '--tools', cli.file('asking.mjs', source)]
    const script =
      'for order in "23":\n    try:\n        print(remind(order=order))\n    except Exception as error:\n        print(error)\nprint("reminded 3")'
    const running = await startWithLines('approvals', args)
    const answer = (id: string, more: object): void =>
      void running.child.stdin.write(`${JSON.stringify({ id, by: 'ann', ...more })}\n`)
    answer(running.proposal.id, { decision: 'accept', script })
    const asked = async (count: number): Promise<Line> => {
      for (;;) {
        const found = linesOf({ stdout: running.stdout().replace(/[^\n]*$/, '') }).filter(
          ({ type }) => type === 'approval',
        )
        if (found[count - 1] !== undefined) return found[count - 1] as Line
        await once(running.child.stdout, 'data')
      }
    }
    const first = await asked(1)
    expect(first).toMatchObject({ type: 'approval', tool: 'remind', args: { order: '2' }, effect: 'write', line: 3 })
    answer(first.id ?? '', { decision: 'edit', script: 'x' })
    answer(first.id ?? '', { decision: 'accept' })
    answer((await asked(2)).id ?? '', { decision: 'reject', text: 'not this one' })
    const ended = await running.ended
    expect([ended.code, lastLine(ended)]).toMatchObject([0, { status: 'completed', tool_calls: 2 }])
    expect(ended.stderr).toContain('a call is accepted or rejected; it has no script')
    const [id = ''] = readdirSync(agentsIn('approvals'))
    const record = readFileSync(join(agentsIn('approvals'), id, 'thread.sqlite'))
    expect(record.includes('reminded 2')).toBe(true)
    expect(record.includes('not this one')).toBe(true)
  })

  test('continues a script that waits with --review never, and an answer cannot drive the terminal', async () => {
    const model = cli.file(
      'driving.mjs',
      `let calls = 0
export default async (prompt) => prompt.includes('done') ? '\\x1b]52;c;QQ==\\x07\\x1b[2JAll is \\u202ewell.'
  : '<execution-code>\\nprint("done")\\n</execution-code>'`,
    )
    const first = await startWithLines('driving', ['agent', 'Do it', '--model', model])
    first.child.kill('SIGKILL')
    await first.ended
    const [id = ''] = readdirSync(agentsIn('driving'))
    const ended = await atTerminal('driving', [], ['agent', '--resume', id, '--model', model, '--review', 'never'])
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining('All is ') as string })
    expect(ended.stdout.replaceAll('\u001B[0m', '')).not.toContain('\u001B')
  })

  test('ends with the reason of a rejection, says how to continue, and continues with another task', async () => {
    const ended = await atTerminal('rejected', [
      [PROMPT, 'j\n'],
      ['Reason, for the record: ', 'not now\n'],
    ])
    expect(ended).toMatchObject({
      code: 130,
      stdout: expect.stringContaining(`rejected by ${NAME}: not now`) as string,
    })
    const [id = ''] = readdirSync(agentsIn('rejected'))
    const command = `sandglass agent --resume ${id} --model ${MODEL} --tools ${TOOLS}`
    expect(ended.stdout).toContain(command)
    const args = [...command.split(' ').slice(1), 'Remind them', '--review', 'never']
    const next = await cli.run(args, { env: stateIn('rejected') })
    expect([next.code, next.stdout]).toEqual([0, 'Two orders with 125 are open; I sent reminders.\n'])
    expect(next.stderr).toContain('[tool] remind {"order":"2"}')
  })

  test.for<[readonly string[], string]>([
    [['agent', '--model', MODEL], 'agent needs a TASK, or --resume ID'],
    [['agent', 'Do', 'it', '--model', MODEL], 'agent takes one TASK'],
    [['agent', 'Do it'], 'agent needs --model MODEL'],
    [['agent', '--resume', '../x', '--model', MODEL], '--resume: "../x" is not the id of an agent'],
    [['agent', '--resume', '20261126T101500000-5f1e77a0', '--model', MODEL], 'there is no such agent in '],
    [['agent', 'Do it', '--model', MODEL, '--review', 'never', '--file', `${ORDERS}:../x`], '--file "../x": '],
    [
      ['agent', 'Do it', '--model', MODEL, '--review', 'never', '--engine', 'pyodide'],
      '--engine "pyodide": agent runs scripts on local or docker',
    ],
    [['agent', 'Do it', '--model', MODEL], '--review always needs a terminal, or --json'],
  ])('%j is wrong usage', async ([args, message]) => {
    const ended = await cli.run(args, { env: stateIn('refused') })
    expect([ended.code, ended.stderr]).toMatchObject([2, expect.stringContaining(message) as string])
  })
})
