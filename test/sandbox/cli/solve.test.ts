import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { parseEvent } from '../../../src/journal/parse-event.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { lastLine, linesOf } from '../../support/cli/sandglass.ts'
import { makeSolveCommand, maskTimesAndIds } from './solve-command.ts'
import { fence, modelModule } from './solve-modules.ts'

const { skip } = await requireLocalEngine()
const command = makeSolveCommand()
afterAll(() => command[Symbol.dispose]())
const { cli, solve, tools: TOOLS, right: RIGHT, learns: LEARNS, fails: FAILS } = command

describe.skipIf(skip)('sandglass solve', () => {
  test('prints the answer on stdout, each attempt and how to see more on stderr', async () => {
    const ended = await solve('learns', ['What do late orders add up to?', '--model', LEARNS, '--tools', TOOLS])
    expect([ended.code, ended.stdout]).toEqual([0, '{\n  "total": 200\n}\n'])
    expect(maskTimesAndIds(ended.stderr)).toBe(
      `[rejected] attempt 1 (TIME): the script was rejected before it ran: line 1: search() has no parameter 'state'
[failed] attempt 2 (TIME, 2 tool calls): KeyError: 'price'
[completed] attempt 3 (TIME, 1 tool call)
sandglass: 3 attempts, 330 tokens, 3 tool calls, TIME; more with: sandglass show ID
`,
    )
  })

  test('--output, --allow-module and --keep-prompts reach the model and the journal', async () => {
    const model = modelModule(
      cli,
      'modules.ts',
      fence('import decimal\nimport ctypes\nemit_result("much")'),
      fence('import ctypes\nemit_result(1)'),
    )
    const schema = cli.file('schema.json', '{"type":"integer"}')
    const flags = ['--model', model, '--output', schema, '--allow-module', 'ctypes', '--keep-prompts']
    const { code, stdout, stderr } = await solve('kept', ['Count', ...flags])
    expect([code, stdout]).toEqual([0, '1\n'])
    expect(maskTimesAndIds(stderr)).toContain(
      '[failed] attempt 1 (TIME): the result does not match `output`: result: expected integer',
    )
    const page = await cli.run(['show', 'last', '--html'], { env: { XDG_STATE_HOME: join(cli.directory, 'kept') } })
    expect(page.stdout).toContain(
      'The data of emit_result must match this JSON Schema: {&quot;type&quot;:&quot;integer&quot;}',
    )
  })

  test('exits with 1 without an answer, and prints nothing on stdout', async () => {
    const ended = await solve('fails', ['Add up', '--model', FAILS, '--tools', TOOLS, '--max-retries', '0'])
    expect([ended.code, ended.stdout]).toEqual([1, ''])
    expect(maskTimesAndIds(ended.stderr)).toBe(
      `[failed] attempt 1 (TIME, 2 tool calls): KeyError: 'price'
[retries-spent] no answer; the last attempt shows the reason
sandglass: 1 attempt, 110 tokens, 2 tool calls, TIME; more with: sandglass show ID
`,
    )
  })

  test('--json prints one line with the outcome and nothing else', async () => {
    const ended = await solve('json', ['Add up', '--model', LEARNS, '--tools', TOOLS, '--json'])
    expect([ended.code, ended.stderr, ended.stdout.split('\n').length]).toEqual([0, '', 2])
    expect(lastLine(ended)).toEqual({
      v: 1,
      type: 'solve_result',
      warnings: [],
      files: [],
      displays: [],
      run_id: expect.stringMatching(/^\d{8}T\d{9}-[0-9a-f]{8}$/) as string,
      status: 'completed',
      success: true,
      final_data: { total: 200 },
      error: null,
      partial: null,
      mode: 'plan',
      attempts: 3,
      steps: 0,
      models: ['scripted-1'],
      prompt_tokens: 300,
      completion_tokens: 30,
      cost: null,
      tool_calls: 3,
      duration_ms: expect.any(Number) as number,
    })
  })

  test('--events prints the journal as it is written, then that line', async () => {
    const place = join(cli.directory, 'kept')
    const ended = await solve('events', ['Add up', '--model', RIGHT, '--tools', TOOLS, '--events', '--journal', place])
    const lines = linesOf(ended) as unknown as { type: string; event?: { type: string }; run_id?: string }[]
    expect(lines.map(({ type, event }) => event?.type ?? type)).toEqual([
      'run_started',
      'prompt_written',
      'script_generated',
      'script_checked',
      'sandbox_assigned',
      'tool_called',
      'tool_answered',
      'script_executed',
      'attempt_ended',
      'run_ended',
      'solve_result',
    ])
    const stored = readFileSync(join(place, `${lines.at(-1)?.run_id}.jsonl`), 'utf8')
      .trimEnd()
      .split('\n')
    expect(stored.map(parseEvent)).toEqual(lines.slice(0, -1).map(({ event }) => event))
  })

  test('keeps the journal in the SQLite file that --journal names', async () => {
    const place = join(cli.directory, 'runs.sqlite')
    const solved = await solve('sqlite', ['Add up', '--model', RIGHT, '--tools', TOOLS, '--journal', place])
    const shown = await cli.run(['show', 'last', '--json', '--journal', place])
    expect([solved.code, shown.code]).toEqual([0, 0])
    expect(solved.stderr).toContain(` --journal ${place}\n`)
    expect(lastLine(shown)).toMatchObject({ type: 'run_record', task: 'Add up', success: true })
    expect(existsSync(join(cli.directory, 'sqlite'))).toBe(false)
  })

  test('keeps its journal beside the state of sandboxes, which stays readable for them', async () => {
    const shared = {
      XDG_STATE_HOME: join(cli.directory, 'shared'),
      SANDGLASS_STATE_DIR: join(cli.directory, 'shared/sandglass'),
    }
    const ended = await solve('shared', ['Add up', '--model', RIGHT, '--tools', TOOLS, '--engine', 'local'], shared)
    expect([ended.code, ended.stdout]).toEqual([0, '{\n  "total": 200\n}\n'])
    const [directory, runs] = ['shared/sandglass', 'shared/sandglass/runs'].map((name) =>
      statSync(join(cli.directory, name)),
    )
    expect([(directory?.mode ?? 0) & 0o077, (runs?.mode ?? 0) & 0o077]).toEqual([0o055, 0])
  })

  test('--interactive goes step by step', async () => {
    const steps = modelModule(
      cli,
      'steps.ts',
      fence('emit_intermediate("orders", search(status="late"))'),
      fence('emit_result(2)'),
    )
    const ended = await solve('steps', ['Count', '--model', steps, '--tools', TOOLS, '--interactive', '--json'])
    expect(lastLine(ended)).toMatchObject({ mode: 'interactive', steps: 2, attempts: 2, final_data: 2 })
  })

  test('--session keeps variables from step to step', async () => {
    const steps = modelModule(cli, 'cells.ts', fence('n = [1]'), fence('n.append(2)\n1 / 0'), fence('emit_result(n)'))
    const args = ['Count', '--model', steps, '--interactive', '--session', '--on-error', 'rollback', '--json']
    const ended = await solve('cells', args)
    expect(lastLine(ended)).toMatchObject({ mode: 'interactive', steps: 2, attempts: 3, final_data: [1] })
  })

  test('reads the task from stdin, gives inputs by value and hides secrets', async () => {
    const script = 'import os\nprint(os.environ["TOKEN"])\nemit_result(limit + 1)'
    const model = modelModule(cli, 'inputs.ts', fence(script))
    const args = ['-', '--model', model, '--input', 'limit=41', '--secret', 'TOKEN', '--policy', 'off', '--json']
    const ended = await solve('inputs', args, { TOKEN: 'hunter2-hunter2' }, 'Count up\n')
    expect(lastLine(ended)).toMatchObject({ success: true, final_data: 42 })
    const shown = await cli.run(['show', 'last'], { env: { XDG_STATE_HOME: join(cli.directory, 'inputs') } })
    expect(shown.stdout).toContain('task      Count up\n')
    expect(shown.stdout).toContain('| [redacted:TOKEN]\n')
  })

  test('--pricing reports the cost, and --budget-cost ends the run', async () => {
    const prices = cli.file('prices.json', '{"scripted-1": {"input": 10, "output": 100}}')
    const args = ['Add up', '--model', LEARNS, '--tools', TOOLS, '--pricing', prices]
    const ended = await solve('cost', [...args, '--json'])
    expect(lastLine(ended)).toMatchObject({ status: 'completed', attempts: 3, cost: 0.006 })
    const shown = await cli.run(['show', 'last'], { env: { XDG_STATE_HOME: join(cli.directory, 'cost') } })
    expect(shown.stdout).toMatch(/cost +0\.006\n[^]*cost +0\.002\n/)
    const bounded = await solve('bounded', [...args, '--budget-cost', '0.003', '--json'])
    expect(lastLine(bounded)).toMatchObject({ status: 'budget-spent', attempts: 2, cost: 0.004 })
  })

  test('ends when the budget of tokens is spent, with the partial answer', async () => {
    const model = modelModule(cli, 'budget.ts', fence('emit_intermediate("half", 1)\nemit_result(1 / 0)'))
    const ended = await solve('budget', ['Try', '--model', model, '--budget-tokens', '100', '--json'])
    expect([ended.code, lastLine(ended)]).toMatchObject([
      1,
      {
        status: 'budget-spent',
        error: 'the budget of 100 tokens is spent',
        partial: [{ label: 'half', data: 1 }],
        attempts: 1,
      },
    ])
  })

  test.each([[], ['--json'], ['--events']])('output of modules goes to stderr (%j)', async (...flags) => {
    const say = (what: string): string =>
      `import { log } from 'node:console'\nconsole.log('${what} one')\nconsole.info('${what} two')\nlog('${what} three')\n`
    const model = cli.file('talks.ts', `${say('model')}${readFileSync(RIGHT, 'utf8')}`)
    const tools = cli.file('talking-tools.ts', `${say('tools')}${readFileSync(TOOLS, 'utf8')}`)
    const ended = await solve('talks', ['Add up', '--model', model, '--tools', tools, ...flags])
    expect([ended.code, /(model|tools) (one|two|three)/.exec(ended.stdout)]).toEqual([0, null])
    const said = ended.stderr.split('\n').filter((line) => /^(model|tools) /.test(line))
    expect(said).toEqual(['tools', 'model'].flatMap((what) => ['one', 'two', 'three'].map((word) => `${what} ${word}`)))
  })

  test('names the journal by its absolute path, and only stored runs', async () => {
    const place = relative(process.cwd(), join(cli.directory, 'whole'))
    const stored = await solve('whole', ['Add up', '--model', RIGHT, '--tools', TOOLS, '--journal', place])
    expect(maskTimesAndIds(stored.stderr)).toContain(
      `more with: sandglass show ID --journal ${join(cli.directory, 'whole')}\n`,
    )
    const gone = join(cli.directory, 'gone')
    const model = cli.file(
      'removes.ts',
      `import { rmSync } from 'node:fs'
export default async () => ({ text: rmSync(${JSON.stringify(gone)}, { recursive: true, force: true }) ?? '' })`,
    )
    const lost = await solve('lost', ['Add up', '--model', model, '--max-retries', '1', '--journal', gone])
    expect(lost.stderr).not.toContain('sandglass show')
  })

  test('a model that fails exits with 7 and the reason', async () => {
    const model = cli.file('broken.ts', 'export const model = async () => { throw new Error("no credit") }')
    const ended = await solve('broken', ['Try', '--model', model])
    expect([ended.code, ended.stdout]).toEqual([7, ''])
    expect(maskTimesAndIds(ended.stderr)).toBe(
      `[model-failed] attempt 1 (TIME): the model failed: no credit
[model-failed] no answer; the last attempt shows the reason
sandglass: 1 attempt, 0 tokens, 0 tool calls, TIME; more with: sandglass show ID
`,
    )
  })

  test('--record stores answers, and replay: repeats them', async () => {
    const record = join(cli.directory, 'answers.jsonl')
    const recorded = await solve('record', ['Add up', '--model', LEARNS, '--tools', TOOLS, '--record', record])
    const replayed = await solve('replay', [
      'Something else',
      '--model',
      `replay:${record}`,
      '--tools',
      TOOLS,
      '--json',
    ])
    expect([recorded.code, replayed.code]).toEqual([0, 0])
    expect(lastLine(replayed)).toMatchObject({ final_data: { total: 200 }, attempts: 3, models: ['scripted-1'] })
    const again = await solve('replay', ['Too long', '--model', `replay:${emptyFile()}`, '--json'])
    expect([again.code, lastLine(again)]).toMatchObject([7, { status: 'model-failed' }])
  })

  test('Ctrl-C ends the run, is in the journal, and exits with 130', async () => {
    const model = cli.file('waits.ts', 'export default () => new Promise(() => {})')
    const env = { XDG_STATE_HOME: join(cli.directory, 'cancelled') }
    const running = cli.start(['solve', 'Wait', '--model', model, '--events'], env)
    running.child.stdin.end()
    await running.said('prompt_written')
    running.child.kill('SIGINT')
    const ended = await running.ended
    expect([ended.code, lastLine(ended)]).toMatchObject([130, { type: 'solve_result', status: 'cancelled' }])
  })
})

function emptyFile(): string {
  mkdirSync(join(cli.directory, 'empty'), { recursive: true })
  const path = join(cli.directory, 'empty/answers.jsonl')
  writeFileSync(path, '')
  return path
}
