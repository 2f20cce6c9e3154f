import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, relative } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { exitCodeOfRun } from '../../src/cli/exit-codes.ts'
import { fitting } from '../../src/cli/live-line.ts'
import { SolveProgress } from '../../src/cli/solve-progress.ts'
import type { JournalBody } from '../../src/journal/index.ts'
import { requireLocalEngine } from '../local-engine.ts'
import { type Ended, lastLine, linesOf, makeCli } from './sandglass.ts'
import { FAILING_SCRIPT, fenced, modelModule, orderTools, REJECTED_SCRIPT, RIGHT_SCRIPT } from './solve-modules.ts'

const { skip } = await requireLocalEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

const TOOLS = orderTools(cli)
const RIGHT = modelModule(cli, 'right.ts', fenced(RIGHT_SCRIPT))
const LEARNS = modelModule(cli, 'learns.ts', fenced(REJECTED_SCRIPT), fenced(FAILING_SCRIPT), fenced(RIGHT_SCRIPT))
const FAILS = modelModule(cli, 'fails.ts', fenced(FAILING_SCRIPT))

/** `sandglass solve` with a journal of its own below the test's directory. */
function solve(state: string, args: readonly string[], env: Record<string, string> = {}, input = ''): Promise<Ended> {
  return cli.run(['solve', ...args], { env: { XDG_STATE_HOME: join(cli.directory, state), ...env }, input })
}

/** Times and ids differ from run to run. */
function settled(text: string): string {
  return text.replaceAll(/\d+(\.\d+)? m?s\b/g, 'TIME').replaceAll(/\d{8}T\d{9}-[0-9a-f]{8}/g, 'ID')
}

describe.skipIf(skip)('sandglass solve', () => {
  test('prints the answer on stdout, each attempt and how to see more on stderr', async () => {
    const ended = await solve('learns', ['What do late orders add up to?', '--model', LEARNS, '--tools', TOOLS])
    expect([ended.code, ended.stdout]).toEqual([0, '{\n  "total": 200\n}\n'])
    expect(settled(ended.stderr)).toBe(
      `[rejected] attempt 1 (TIME): the script was rejected before it ran: line 1: search() has no parameter 'state'
[failed] attempt 2 (TIME, 2 tool calls): KeyError: 'price'
[completed] attempt 3 (TIME, 1 tool call)
sandglass: 3 attempts, 330 tokens, 3 tool calls, TIME; more with: sandglass show ID
`,
    )
  })

  test('of a run without an answer exits with 1, and prints nothing on stdout', async () => {
    const ended = await solve('fails', ['Add up', '--model', FAILS, '--tools', TOOLS, '--max-retries', '0'])
    expect([ended.code, ended.stdout]).toEqual([1, ''])
    expect(settled(ended.stderr)).toBe(
      `[failed] attempt 1 (TIME, 2 tool calls): KeyError: 'price'
[retries-spent] no answer, for the reason of the last attempt
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
    expect(stored.map((line) => JSON.parse(line) as unknown)).toEqual(lines.slice(0, -1).map(({ event }) => event))
  })

  test('keeps the journal in an SQLite file where --journal names one', async () => {
    const place = join(cli.directory, 'runs.sqlite')
    const solved = await solve('sqlite', ['Add up', '--model', RIGHT, '--tools', TOOLS, '--journal', place])
    const shown = await cli.run(['show', 'last', '--json', '--journal', place])
    expect([solved.code, shown.code]).toEqual([0, 0])
    expect(solved.stderr).toContain(` --journal ${place}\n`)
    expect(lastLine(shown)).toMatchObject({ type: 'run_record', task: 'Add up', success: true })
    expect(existsSync(join(cli.directory, 'sqlite'))).toBe(false)
  })

  test('keeps its journal beside the state of sandboxes without shutting them out', async () => {
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
      fenced('emit_intermediate("orders", search(status="late"))'),
      fenced('emit_result(2)'),
    )
    const ended = await solve('steps', ['Count', '--model', steps, '--tools', TOOLS, '--interactive', '--json'])
    expect(lastLine(ended)).toMatchObject({ mode: 'interactive', steps: 2, attempts: 2, final_data: 2 })
  })

  test('reads the task from stdin, gives inputs by value and hides secrets', async () => {
    const script = 'import os\nprint(os.environ["TOKEN"])\nemit_result(limit + 1)'
    const model = modelModule(cli, 'inputs.ts', fenced(script))
    const args = ['-', '--model', model, '--input', 'limit=41', '--secret', 'TOKEN', '--policy', 'off', '--json']
    const ended = await solve('inputs', args, { TOKEN: 'hunter2-hunter2' }, 'Count up\n')
    expect(lastLine(ended)).toMatchObject({ success: true, final_data: 42 })
    const shown = await cli.run(['show', 'last'], { env: { XDG_STATE_HOME: join(cli.directory, 'inputs') } })
    expect(shown.stdout).toContain('task      Count up\n')
    expect(shown.stdout).toContain('| [redacted:TOKEN]\n')
  })

  test('ends when the budget of tokens is spent, with what there is', async () => {
    const model = modelModule(cli, 'budget.ts', fenced('emit_intermediate("half", 1)\nemit_result(1 / 0)'))
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

  test.each([[], ['--json'], ['--events']])('what modules print goes to stderr (%j)', async (...flags) => {
    const say = (what: string): string =>
      `import { log } from 'node:console'\nconsole.log('${what} one')\nconsole.info('${what} two')\nlog('${what} three')\n`
    const model = cli.file('talks.ts', `${say('model')}${readFileSync(RIGHT, 'utf8')}`)
    const tools = cli.file('talking-tools.ts', `${say('tools')}${readFileSync(TOOLS, 'utf8')}`)
    const ended = await solve('talks', ['Add up', '--model', model, '--tools', tools, ...flags])
    expect([ended.code, /(model|tools) (one|two|three)/.exec(ended.stdout)]).toEqual([0, null])
    const said = ended.stderr.split('\n').filter((line) => /^(model|tools) /.test(line))
    expect(said).toEqual(['tools', 'model'].flatMap((what) => ['one', 'two', 'three'].map((word) => `${what} ${word}`)))
  })

  test('names the journal by its whole path, and no run that was not stored', async () => {
    const place = relative(process.cwd(), join(cli.directory, 'whole'))
    const stored = await solve('whole', ['Add up', '--model', RIGHT, '--tools', TOOLS, '--journal', place])
    expect(settled(stored.stderr)).toContain(`more with: sandglass show ID --journal ${join(cli.directory, 'whole')}\n`)
    const gone = join(cli.directory, 'gone')
    const model = cli.file(
      'removes.ts',
      `import { rmSync } from 'node:fs'
export default async () => ({ text: rmSync(${JSON.stringify(gone)}, { recursive: true, force: true }) ?? '' })`,
    )
    const lost = await solve('lost', ['Add up', '--model', model, '--max-retries', '1', '--journal', gone])
    expect(lost.stderr).not.toContain('sandglass show')
  })

  test('a model that fails exits with 7 and says why', async () => {
    const model = cli.file('broken.ts', 'export const model = async () => { throw new Error("no credit") }')
    const ended = await solve('broken', ['Try', '--model', model])
    expect([ended.code, ended.stdout]).toEqual([7, ''])
    expect(settled(ended.stderr)).toBe(
      `[model-failed] attempt 1 (TIME): the model failed: no credit
[model-failed] no answer, for the reason of the last attempt
sandglass: 1 attempt, 0 tokens, 0 tool calls, TIME; more with: sandglass show ID
`,
    )
  })

  test('--record writes answers down, and replay: gives them again', async () => {
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

  test('Ctrl-C ends the run, which the journal tells, and exits with 130', async () => {
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

describe.skipIf(skip)('sandglass solve with an OpenAI-compatible address', () => {
  const KEY = 'sk-test-1234567890abcdef'

  test.each(['--model-url', 'OPENAI_BASE_URL'])('given by %s, sends the key and tells it nowhere', async (way) => {
    await using server = await chatServer(200, {
      model: 'local-model',
      choices: [{ message: { content: fenced(`emit_result("${KEY}"[:3])`) } }],
      usage: { prompt_tokens: 7, completion_tokens: 5 },
    })
    const place = join(cli.directory, `key-${way}`)
    const args = ['Say it', '--model', 'tiny', '--events', `--journal=${place}`]
    const env = { OPENAI_API_KEY: KEY, ...(way === 'OPENAI_BASE_URL' ? { OPENAI_BASE_URL: server.url } : {}) }
    const ended = await solve('key', way === '--model-url' ? [...args, way, server.url] : args, env)
    expect(lastLine(ended)).toMatchObject({ success: true, models: ['local-model'], prompt_tokens: 7 })
    expect(server.asked.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      ['/v1/chat/completions', `Bearer ${KEY}`],
    ])
    const files = readdirSync(place).map((name) => readFileSync(join(place, name), 'utf8'))
    expect([ended.stdout, ended.stderr, ...files].filter((text) => text.includes(KEY))).toEqual([])
    expect(files.join('')).toContain('[redacted:OPENAI_API_KEY]')
  })

  test('that refuses the key, says so without it', async () => {
    await using server = await chatServer(401, { error: { message: `Incorrect API key provided: ${KEY}` } })
    const args = ['Say it', '--model', 'tiny', '--model-url', server.url]
    const ended = await solve('refused', args, { OPENAI_API_KEY: KEY })
    expect([ended.code, ended.stdout]).toEqual([7, ''])
    expect(ended.stderr).toContain(
      'answered 401: {"error":{"message":"Incorrect API key provided: [redacted:apiKey]"}}',
    )
    expect(ended.stderr).not.toContain(KEY)
  })
})

describe('sandglass solve refuses before anything starts', () => {
  const nothing = cli.file('nothing.ts', 'export const answer = 42')
  const wrong = cli.file('wrong.ts', 'export default 42')
  const throws = cli.file('throws.ts', 'throw new Error("no licence")')
  test.concurrent.each<[string[], string]>([
    [[], 'solve needs a TASK, or - for stdin; see sandglass solve --help'],
    [['How', 'many?', '--model', RIGHT], 'solve takes one TASK, not also "many?": write it in quotes'],
    [['  ', '--model', RIGHT], 'the task is empty; say what is wanted'],
    [['x'], 'solve needs --model MODEL: a name, replay:FILE or a module; see sandglass solve --help'],
    [
      ['x', '--model', 'gpt-5-mini'],
      '--model gpt-5-mini: OPENAI_API_KEY is not set; set it, name another address by --model-url',
    ],
    [['x', '--model', 'a', '--model-url', 'ftp://h'], '--model-url: url "ftp://h" is no http or https address'],
    [['x', '--model', 'a', '--model-url', 'http://me:pw@h'], '--model-url: no name and password in the address'],
    [
      ['x', '--model', RIGHT, '--model-url', 'http://h'],
      `--model-url belongs to a model that is named, and --model ${RIGHT} is a module`,
    ],
    [['x', '--model', '/nonexistent/m.ts'], '--model /nonexistent/m.ts: there is no such file\n'],
    [
      ['x', '--model', './model', '--model-url', 'http://127.0.0.1:1'],
      '--model ./model: it is a path, no name of a model. Did you mean replay:./model, or a module that ends in .ts or .js?',
    ],
    [
      ['x', '--model', join(cli.directory, 'right')],
      `--model ${cli.directory}/right: it is a path, no name of a model. Did you mean ${RIGHT}?`,
    ],
    [['x', '--model', 'package.json'], '--model package.json: it is a file, no name of a model. Did you mean replay:'],
    [
      ['x', '--model', nothing],
      `--model ${nothing}: it exports no model; export default async (prompt) => ({ text: '…' })`,
    ],
    [['x', '--model', wrong], `--model ${wrong}: model: must be an async function from a prompt to { text }`],
    [['x', '--model', throws], `--model ${throws}: it cannot be loaded: no licence`],
    [['x', '--model', 'replay:/nonexistent'], '--model replay:/nonexistent: /nonexistent cannot be read: ENOENT'],
    [['x', '--model', RIGHT, '--record', '/nonexistent/r'], '--record /nonexistent/r: ENOENT'],
    [['x', '--model', RIGHT, '--max-steps', '2'], '--max-steps belongs to --interactive; attempts are --max-retries'],
    [['x', '--model', RIGHT, '--max-retries', '-1'], '--max-retries needs a value: --max-retries N'],
    [['x', '--model', RIGHT, '--budget-seconds', '0'], '--budget-seconds: 0 is not a number of seconds from 0.001 to'],
    [['x', '--model', RIGHT, '--budget-tokens', '1.5'], '--budget-tokens: "1.5" is not a whole number from 1 to'],
    [['x', '--model', RIGHT, '--input', 'a b=1'], '--input a b: "a b" is no Python identifier'],
    [['x', '--model', RIGHT, '--input', 'class=1'], '--input class: "class" is a keyword of Python'],
    [
      ['x', '--model', RIGHT, `--journal=${'x'.repeat(5000)}`],
      `--journal ${'x'.repeat(200)}…: it cannot be looked at: `,
    ],
    [
      ['x', '--model', RIGHT, '--journal', nothing],
      `--journal ${nothing}: it is a file; a journal is a directory, or a SQLite file`,
    ],
    [['x', '--modle', RIGHT], 'no flag --modle. Did you mean "--model"?'],
  ])('solve %j', async (args, message) => {
    const ended = await solve('refusals', args)
    expect([ended.code, ended.stdout]).toEqual([2, ''])
    expect(ended.stderr).toContain(`sandglass: ${message}`)
    expect(ended.stderr).not.toContain('pw@')
    expect(existsSync(join(cli.directory, 'refusals'))).toBe(false)
  })

  test.each([
    ['/proc/1/foo', '/proc/1/foo cannot be made: ENOENT'],
    ['/proc', 'ENOENT (open)'],
    ['/etc/passwd/runs', '/etc/passwd is a file, no directory'],
  ])('a journal in %s, where nothing can be written, exits with 8', async (place, reason) => {
    const ended = await solve('unwritable', ['x', '--model', RIGHT, '--journal', place, '--json'])
    expect([ended.code, lastLine(ended)]).toMatchObject([
      8,
      { type: 'error', code: 'journal_unusable', error: `the journal ${place} cannot be used: ${reason}` },
    ])
  })

  test('a signal before the sandbox is there is told in plain words, and exits with 130', async () => {
    const model = cli.file('ends.ts', 'process.kill(process.pid, "SIGTERM")\nexport default async () => ({ text: "" })')
    const ended = await solve('early', ['x', '--model', model])
    expect([ended.code, ended.stdout, ended.stderr]).toEqual([130, '', 'sandglass: cancelled by SIGTERM\n'])
  })

  test('without an engine exits with 8', async () => {
    const args = ['x', '--model', RIGHT, '--engine', 'local', '--json']
    const ended = await solve('no-engine', args, { PATH: '/nonexistent' })
    expect([ended.code, lastLine(ended).code]).toEqual([8, 'bubblewrap_missing'])
  })
})

test('what became of a run has its exit code', () => {
  const statuses = [
    'completed',
    'retries-spent',
    'steps-spent',
    'stagnated',
    'budget-spent',
    'model-failed',
    'infrastructure',
    'unfinished',
    'cancelled',
  ] as const
  expect(statuses.map(exitCodeOfRun)).toEqual([0, 1, 1, 1, 1, 7, 7, 7, 130])
})

test('the line on a terminal tells where the run stands and what it does', () => {
  const progress = new SolveProgress()
  const place = { step: null, attempt: 2 }
  const generated = { model: null, prompt_tokens: 1200, completion_tokens: 34, latency_ms: 1, answer_chars: 1 }
  const told = (...bodies: readonly JournalBody[]): string => {
    for (const body of bodies) progress.take({ v: 1, run_id: '', seq: 0, at: '', ...body })
    return settled(progress.text())
  }
  const call = { ...place, key: 'L1#1', line: 1, name: 'search', effect: 'read', args: {} }
  expect([
    told(),
    told({ type: 'prompt_written', ...place, digest: '', chars: 1, text: null }),
    told({ type: 'script_generated', ...place, ...generated, script: '1', script_digest: '', answer: null }),
    told({ type: 'sandbox_assigned', ...place, sandbox_id: '', engine: '' }, { type: 'tool_called', ...call }),
    told({ type: 'prompt_written', step: 3, attempt: 1, digest: '', chars: 1, text: null }),
  ]).toEqual([
    'starting: looking for a sandbox · TIME · Ctrl-C cancels',
    'attempt 2: asking the model · TIME · Ctrl-C cancels',
    'attempt 2: checking the script · 1,234 tokens · TIME · Ctrl-C cancels',
    'attempt 2: running the script, 1 tool call so far · 1,234 tokens · TIME · Ctrl-C cancels',
    'step 3, attempt 1: asking the model · 1,234 tokens · TIME · Ctrl-C cancels',
  ])
})

test('the line on a terminal is shorter than the terminal', () => {
  expect([fitting('0123456789', 11), fitting('0123456789', 10), fitting('a\nb\u001B[2J', 80)]).toEqual([
    '0123456789',
    '01234567…',
    'a     b\\x1b[2J',
  ])
  expect([undefined, 0, 1].map((columns) => fitting('x'.repeat(200), columns).length)).toEqual([79, 79, 1])
})

function emptyFile(): string {
  mkdirSync(join(cli.directory, 'empty'), { recursive: true })
  const path = join(cli.directory, 'empty/answers.jsonl')
  writeFileSync(path, '')
  return path
}

interface ChatServer extends AsyncDisposable {
  readonly url: string
  readonly asked: { readonly path: string | undefined; readonly headers: IncomingHttpHeaders }[]
}

/** A server on this machine that answers everything with one body. */
async function chatServer(status: number, body: unknown): Promise<ChatServer> {
  const asked: ChatServer['asked'] = []
  const server = createServer((request, response) => {
    asked.push({ path: request.url, headers: request.headers })
    request.resume()
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}
