import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findRun } from '../../src/cli/find-run.ts'
import { html } from '../../src/cli/html.ts'
import { runText } from '../../src/cli/show-text.ts'
import { inOurLine } from '../../src/cli/terminal-text.ts'
import { timelineOf } from '../../src/cli/timeline.ts'
import { violationsText } from '../../src/cli/violations-text.ts'
import { type JournalBody, type JournalEvent, recordOf, sqliteStore } from '../../src/journal/index.ts'
import { requireLocalEngine } from '../local-engine.ts'
import { lastLine, makeCli } from './sandglass.ts'
import { FAILING_SCRIPT, fenced, modelModule, orderTools, REJECTED_SCRIPT, RIGHT_SCRIPT } from './solve-modules.ts'
import { HOSTILE, hostileRun, started, storeRun } from './stored-runs.ts'

const { skip } = await requireLocalEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

const FIRST = '20261122T120000000-aaaaaaaa'
const SECOND = '20261122T130000000-bbbbbbbb'
const ENV = { XDG_STATE_HOME: join(cli.directory, 'kept') }

describe.skipIf(skip)('sandglass show of a run that failed', () => {
  beforeAll(async () => {
    const model = modelModule(cli, 'fails.ts', fenced(REJECTED_SCRIPT), fenced(FAILING_SCRIPT))
    const args = [
      'Add up\nlate orders',
      '--model',
      model,
      '--tools',
      orderTools(cli),
      '--max-retries',
      '2',
      '--engine',
      'local',
    ]
    await cli.run(['solve', ...args], { env: ENV })
  })

  test('tells each attempt with the failing line marked, calls, output and traceback (OR-06)', async () => {
    const { code, stdout, stderr } = await cli.run(['show', 'last'], { env: ENV })
    expect([code, stderr]).toEqual([0, ''])
    expect(fixed(stdout)).toBe(`Run ID  retries-spent
  task      Add up
            late orders
  model     scripted-1
  mode      plan, at most 3 attempts, policy strict
  tools     search, customer
  took      3 attempts, 300 + 30 tokens, 4 tool calls, TIME
  started   WHEN UTC

Attempt 1  rejected after TIME
  prompt    N characters
  answer    in TIME, 100 + 10 tokens, scripted-1

  > 1 | orders = search(state="late")
    2 | emit_result(orders)

  script:1:17: error[unknown_argument]: search() has no parameter 'state'
    1 | orders = search(state="late")
      |                 ^
      = hint: search() takes status. Write status='late' in place of state='late'.

${failedAttempt(2)}

${failedAttempt(3)}
  repeats   the same script as before

No answer: retries-spent
  KeyError: 'price'
`)
  })

  test('--json prints the record as one line', async () => {
    const ended = await cli.run(['show', 'last', '--json'], { env: ENV })
    expect([ended.code, ended.stdout.split('\n').length]).toEqual([0, 2])
    expect(lastLine(ended)).toMatchObject({
      type: 'run_record',
      status: 'retries-spent',
      task: 'Add up\nlate orders',
      missing_events: 0,
      attempts: [
        { status: 'rejected', violations: [{ code: 'unknown_argument', line: 1 }], sandbox: null },
        {
          status: 'failed',
          tool_calls: [
            { key: 'L1#1', line: 1, name: 'search', ok: true },
            { key: 'L3#1', line: 3, name: 'customer', ok: false, error: { code: 'not_found' }, result_json: null },
          ],
          sandbox: { engine: 'local', network: 'none' },
        },
        { status: 'failed', repetition: 'same-script' },
      ],
    })
  })

  test('runs lists it with a run that succeeded, newest first', async () => {
    const model = modelModule(cli, 'right.ts', fenced(RIGHT_SCRIPT))
    await cli.run(['solve', 'Again', '--model', model, '--tools', orderTools(cli)], { env: ENV })
    const [text, limited, asJson] = await Promise.all([
      cli.run(['runs'], { env: ENV }),
      cli.run(['runs', '--limit', '1'], { env: ENV }),
      cli.run(['runs', '--json'], { env: ENV }),
    ])
    const table = fixed(text.stdout).replaceAll(/ +/g, ' ')
    expect([text.code, text.stderr, table]).toEqual([
      0,
      '',
      `RUN STARTED (UTC) STATUS MODE ATTEMPTS TOKENS TIME TASK
ID WHEN completed plan 1 110 TIME Again
ID WHEN retries-spent plan 3 330 TIME Add up late orders
`,
    ])
    expect([limited.stdout.split('\n').length, limited.stderr]).toEqual([
      3,
      'sandglass: 1 older run: --limit N shows more\n',
    ])
    const lines = JSON.parse(asJson.stdout) as Record<string, unknown>[]
    expect(lines[1]).toEqual({
      run_id: expect.any(String) as string,
      started_at: expect.any(String) as string,
      status: 'retries-spent',
      mode: 'plan',
      attempts: 3,
      tokens: 330,
      tool_calls: 4,
      duration_ms: expect.any(Number) as number,
      task: 'Add up\nlate orders',
    })
  })
})

describe('a journal that something happened to', () => {
  test('the run of a process that was killed is shown as far as it went (OR-06)', async () => {
    const place = storeRun(join(cli.directory, 'killed'), FIRST, hostileRun().slice(0, 1))
    appendFileSync(join(place, `${FIRST}.jsonl`), '{"v":1,"run_id":"2026')
    const { code, stdout } = await cli.run(['show', FIRST, '--journal', place])
    expect([code, stdout.split('\n')[0]]).toEqual([0, `Run ${FIRST}  unfinished`])
    expect(stdout).toContain(
      'No answer: unfinished\n  the journal has no end: the process ended first, or the run goes on\n',
    )
  })

  test('events that cannot be read are left out, and counted', async () => {
    const place = storeRun(join(cli.directory, 'holes'), FIRST, [started('Holes'), ...hostileRun().slice(1)])
    const path = join(place, `${FIRST}.jsonl`)
    const lines = readFileSync(path, 'utf8').split('\n')
    lines[4] = 'no JSON'
    lines[8] = lines[8]?.replace('"stdout":"', '"stdout_":"') ?? ''
    writeFileSync(path, lines.join('\n'))
    const { code, stdout } = await cli.run(['show', FIRST, '--journal', place])
    expect(code).toBe(0)
    expect(stdout).toContain('  damaged   2 events of this journal cannot be read\n')
  })

  test('runs tells damaged and foreign files, and show says what is wrong with one', async () => {
    const place = storeRun(join(cli.directory, 'damaged'), FIRST, [started('Fine')])
    for (const [name, content] of [
      [`${SECOND}.jsonl`, '\u0000\u0001 not a journal'],
      ['notes.jsonl', '{}'],
      ['re\u001B[31mport.txt', 'x'],
    ] as const) {
      writeFileSync(join(place, name), content)
    }
    const [list, shown] = await Promise.all([
      cli.run(['runs', '--journal', place]),
      cli.run(['show', SECOND, '--journal', place]),
    ])
    expect([
      list.code,
      list.stdout
        .split('\n')
        .slice(1, 3)
        .map((line) => line.replaceAll(/ +/g, ' ')),
    ]).toEqual([
      0,
      [
        `${SECOND} 2026-11-22 13:00:00 damaged - - - - -`,
        `${FIRST} 2026-11-22 12:00:00 unfinished plan 0 0 0.0 ms Fine`,
      ],
    ])
    expect(list.stderr).toBe(
      `sandglass: ${place} holds what are no journals of a run: "notes.jsonl", "re\\u001b[31mport.txt"\n`,
    )
    expect([shown.code, shown.stdout]).toEqual([2, ''])
    expect(shown.stderr).toBe(`sandglass: the run ${SECOND} in ${place} is damaged: its first event cannot be read\n`)
  })

  test('a file that is no SQLite is an error, not a crash', async () => {
    const path = cli.file('no.sqlite', 'this is no database, but long enough to be looked at as one')
    const ended = await cli.run(['runs', '--journal', path, '--json'])
    expect([ended.code, lastLine(ended).code]).toEqual([8, 'journal_unusable'])
  })

  test.each(['runs', 'show'])('%s leaves the database of somebody else as it is', async (command) => {
    const path = join(cli.directory, `foreign-${command}.db`)
    const database = new DatabaseSync(path)
    database.exec('CREATE TABLE users (name TEXT)')
    database.close()
    const before = readFileSync(path)
    const ended = await cli.run([command, ...(command === 'show' ? ['last'] : []), '--journal', path])
    expect(ended).toEqual({
      code: 8,
      stdout: '',
      stderr: `sandglass: the journal ${path} cannot be used: it is no journal of Sandglass\n`,
    })
    expect(readFileSync(path)).toEqual(before)
    expect(readdirSync(cli.directory).filter((name) => name.startsWith(`foreign-${command}.db-`))).toEqual([])
  })

  test('a database where nothing can be written is read', async () => {
    const place = join(cli.directory, 'sealed')
    mkdirSync(place)
    const path = join(place, 'runs.db')
    const store = sqliteStore(path)
    for (const [seq, body] of [started('Sealed')].entries()) {
      await store.append({ v: 1, run_id: FIRST, seq, at: '2026-11-22T12:00:00.000Z', ...body })
    }
    await store.close()
    chmodSync(path, 0o444)
    chmodSync(place, 0o555)
    const wrapper = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--clear-groups'] : []
    const ended = await cli.run(['runs', '--journal', path], { wrapper })
    chmodSync(place, 0o755)
    expect([ended.code, ended.stderr, ended.stdout.includes('Sealed')]).toEqual([0, '', true])
  })

  test.each<[string, string, string]>([
    ['a name that is too long', 'x'.repeat(5000), 'ENAMETOOLONG'],
    ['a link to itself', join(cli.directory, 'loop'), 'ELOOP'],
  ])('%s is wrong usage', async (_, path, reason) => {
    symlinkSync('loop', join(cli.directory, 'loop'))
    const ended = await cli.run(['runs', `--journal=${path}`])
    rmSync(join(cli.directory, 'loop'))
    expect([ended.code, ended.stdout, ended.stderr.length < 400]).toEqual([2, '', true])
    expect(ended.stderr).toContain(`: it cannot be looked at: ${reason}\n`)
  })
})

describe('which run', () => {
  const place = storeRun(join(cli.directory, 'two'), FIRST, [started('One')])
  storeRun(place, SECOND, [started('Two')])
  mkdirSync(join(cli.directory, 'none'))

  test.concurrent.each<[string[], string]>([
    [['show', 'last', '--journal', place], 'task      Two'],
    [['show', '20261122T12', '--journal', place], 'task      One'],
    [['show', FIRST, '--journal', place], 'task      One'],
    [['runs', '--journal', join(cli.directory, 'none')], `no runs in ${join(cli.directory, 'none')} yet`],
  ])('sandglass %j', async (args, expected) => {
    const { code, stdout } = await cli.run(args)
    expect([code, stdout.includes(expected)]).toEqual([0, true])
  })

  test.concurrent.each<[string[], string]>([
    [['show'], 'show needs a RUN: an id, the beginning of one, or last; sandglass runs lists them'],
    [['show', FIRST, SECOND], `show takes one RUN, not also "${SECOND}"`],
    [['show', 'last', '--out', 'x'], '--out FILE is where --html writes its page: add --html'],
    [['show', 'last', '--html', '--out', '/nonexistent/x', '--journal', place], '--out /nonexistent/x: ENOENT'],
    [['show', 'last', '--journal', '/nonexistent'], '--journal /nonexistent: there is no such directory or database'],
    [['show', 'last', '--journal', join(cli.directory, 'none')], 'there are no runs in '],
    [['show', '2026', '--journal', place], `"2026" is the beginning of 2 runs: ${SECOND}, ${FIRST}; write more of it`],
    [
      ['show', `${FIRST.slice(0, -1)}b`, '--journal', place],
      `no run "${FIRST.slice(0, -1)}b" in ${place}. Did you mean ${FIRST}?; sandglass runs --journal ${place} lists them`,
    ],
    [['show', 'zzz', '--journal', place], `no run "zzz" in ${place}. The newest is ${SECOND}; sandglass runs`],
    [['runs', '--limit', '0'], '--limit: "0" is not a whole number from 1 to 100000'],
    [['runs', 'x'], 'runs takes no "x"'],
  ])('sandglass %j is wrong usage', async (args, message) => {
    const ended = await cli.run(args, { env: ENV })
    expect([ended.code, ended.stdout]).toEqual([2, ''])
    expect(ended.stderr).toContain(`sandglass: ${message}`)
  })

  test('the page that --out writes is for its owner alone', async () => {
    const page = join(cli.directory, 'own.html')
    const ended = await cli.run(['show', 'last', '--html', '--out', page, '--journal', place])
    expect([ended.code, statSync(page).mode & 0o777]).toEqual([0, 0o600])
  })

  test('--json and --html are two forms of one record', async () => {
    const ended = await cli.run(['show', 'last', '--json', '--html'])
    const message = '--json and --html are two forms of the same: take one of them'
    expect([ended.code, ended.stderr, lastLine(ended).error]).toEqual([2, `sandglass: ${message}\n`, message])
  })

  test('before the first run runs says so, and makes nothing', async () => {
    const ended = await cli.run(['runs'], { env: { XDG_STATE_HOME: join(cli.directory, 'never') } })
    expect(ended).toEqual({
      code: 0,
      stdout: `no runs in ${join(cli.directory, 'never/sandglass/runs')} yet\n`,
      stderr: '',
    })
  })

  test('an empty word is the beginning of no run', () => {
    const runs = [{ runId: FIRST, startedAt: '' }]
    expect(() => findRun('', runs, { path: 'p', flag: '' })).toThrow('no run ""')
  })
})

describe('what others wrote', () => {
  const events = hostileRun().map((body, seq): JournalEvent => {
    return { v: 1, run_id: FIRST, seq, at: new Date(Date.UTC(2026, 0, 1, 0, 0, seq)).toISOString(), ...body }
  })

  test.each([true, false])('cannot drive a terminal or turn text round (coloured: %j)', (coloured) => {
    const text = runText({ record: recordOf(events), missing: 0 }, coloured)
    // oxlint-disable-next-line no-control-regex -- control characters are what must not be there
    const ours = text.replaceAll(/\u001B\[\d+m/g, '')
    // oxlint-disable-next-line no-control-regex -- control characters are what must not be there
    expect(ours).not.toMatch(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u202A-\u202E]/)
    expect(ours).toContain('\\x1b]0;taken\\x07')
    expect(coloured ? text.includes('\u001B[31m') : !text.includes('\u001B')).toBe(true)
  })

  test('is cut where it is long, with a word on what is left out', () => {
    const line = 'x'.repeat(1000)
    const place = { step: null, attempt: 1 }
    const bodies = hostileRun().flatMap((body): JournalBody[] => {
      if (body.type === 'script_generated') return [{ ...body, script: line, model: `a\nb${line}` }]
      if (body.type === 'script_checked') return [{ ...body, ok: true, violations: [] }]
      if (body.type === 'intermediate')
        return Array.from({ length: 52 }, () => ({ ...body, label: 'i\nj', data: line }))
      if (body.type === 'log')
        return Array.from({ length: 51 }, () => ({ ...body, ...place, level: 'info', message: line }))
      if (body.type !== 'script_executed') return [body]
      const warnings = Array.from({ length: 60 }, () => ({ code: 'c', message: line }))
      return [{ ...body, stdout: line, stderr: '', traceback: line, error: null, warnings }]
    })
    const long = bodies.map((body, seq): JournalEvent => ({
      v: 1,
      run_id: FIRST,
      seq,
      at: events[0]?.at ?? '',
      ...body,
    }))
    const text = runText({ record: recordOf(long), missing: 0 }, false)
    expect(text.split('\n').filter((one) => one.length > 800)).toEqual([])
    const cut = (head: string): string =>
      `${head}${'x'.repeat(400 - head.length)}… (${600 + head.length} more characters)`
    for (const shown of [
      `    1 | ${cut('')}\n`,
      `    | ${cut('')}\n`,
      `  emitted   ${cut('i j: "').replace('606', '607')}\n`,
      `  log       ${cut('info: ')}\n`,
      `  warning   ${cut('c: ')}\n`,
      '            … 2 more (--json has all)\n',
      '            … 1 more (--json has all)\n',
      '            … 10 more (--json has all)\n',
      `  model     a b${'x'.repeat(77)}…\n`,
    ]) {
      expect(text).toContain(shown)
    }
  })

  test('cannot turn a line of ours round, whichever command prints it', () => {
    const violation = { code: '\u202Ec', line: 1, column: 0, message: '\u2067m', hint: '\u200Fh' }
    expect(inOurLine('a\u202Eb\u061C\u2069\uD800\r\nc')).toBe('a\\u202eb\\u061c\\u2069\uFFFD\n    c')
    const text = violationsText('\u202Ep', 'x = "\u202Ey"', [violation], false)
    expect(text).toBe(`\\u202ep:1:1: error[\\u202ec]: \\u2067m
  1 | x = "\\u202ey"
    | ^
    = hint: \\u200fh
`)
  })

  test('is escaped in HTML, in texts and in attributes, however deep it stands', () => {
    const page = html`<p title="${HOSTILE}">${[[HOSTILE], html`<b>${HOSTILE}</b>`]}</p>`.toString()
    expect(page.match(/<[^>]*>/g)?.map((tag) => tag.replace(/ .*/s, ''))).toEqual(['<p', '<b>', '</b>', '</p>'])
    expect(html`${"a'b`c&\u0000\uD800"}`.toString()).toBe('a&#39;b&#96;c&amp;\\x00\uFFFD')
  })

  test('the timeline reads spans out of the times of the events, and ends what has no end', () => {
    expect(timelineOf(events)).toEqual({
      totalMs: 9000,
      rows: [
        {
          step: null,
          attempt: 1,
          spans: [
            { kind: 'model', from: 1000, ms: 1000, name: null },
            { kind: 'check', from: 2000, ms: 1000, name: null },
            { kind: 'call', from: 4000, ms: 1000, name: HOSTILE },
          ],
        },
      ],
    })
    const [, written] = events
    expect(timelineOf(events.slice(0, 2)).rows[0]?.spans).toEqual(
      written === undefined ? [] : [{ kind: 'model', from: 1000, ms: 0, name: null }],
    )
  })
})

/** The text of an attempt with {@link FAILING_SCRIPT}. */
function failedAttempt(number: number): string {
  return `Attempt ${number}  failed after TIME
  prompt    N characters
  answer    in TIME, 100 + 10 tokens, scripted-1
  sandbox   local (os-sandbox), Python VERSION, its Nth script, network none, LIMITS
  script    ran for TIME

    1 | orders = search(status="late")
    2 | try:
    3 |     customer(id="A-1")
    4 | except ToolError as error:
    5 |     print("nobody:", error)
  > 6 | total = orders[0]["price"]
    7 | emit_result(total)

  tool calls
    line 1  search(status="late")  TIME  → [{"id":"A-1","total":120,"status":"late"},{"id":"A-2","total":80,"status":"late"}]
    line 3  customer(id="A-1")  TIME  ✗ not_found: no customer of A-1

  stdout
    | nobody: no customer of A-1

  traceback
    | Traceback (most recent call last):
    |   File "<script>", line 6, in <module>
    |     total = orders[0]["price"]
MARKS
    | KeyError: 'price'

  error     KeyError: 'price'`
}

/** What differs from run to run, from machine to machine and from one Python to another. */
function fixed(text: string): string {
  return text
    .replaceAll(/^ {4}\|[ ~^]+\^+\n/gm, 'MARKS\n')
    .replaceAll(/ +\d+(\.\d+)? ms  ([→✗])/g, '  TIME  $2')
    .replaceAll(/\d+(\.\d+)? m?s\b/g, 'TIME')
    .replaceAll(/\d{8}T\d{9}-[0-9a-f]{8}/g, 'ID')
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, 'WHEN')
    .replaceAll(/[\d,]+ characters/g, 'N characters')
    .replaceAll(/its \d+\w\w script/g, 'its Nth script')
    .replaceAll(/Python \d[\w.]+/g, 'Python VERSION')
    .replaceAll(/(limits [a-z, ]+|no limit enforced)$/gm, 'LIMITS')
}
