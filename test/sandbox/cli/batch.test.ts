import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { type Line, linesOf, makeCli } from '../../support/cli/sandglass.ts'
import { runAtTerminal } from '../../support/cli/terminal.ts'

const { skip } = await requireLocalEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

const ndjson = (requests: readonly unknown[]): string =>
  requests.map((request) => `${typeof request === 'string' ? request : JSON.stringify(request)}\n`).join('')
const byId = (lines: readonly Line[]): Record<string, Line> =>
  Object.fromEntries(lines.map((line) => [line.id ?? `line ${line.line}`, line]))

describe.skipIf(skip)('sandglass batch', () => {
  test('each request gets one answer with its id, in order of completion', async () => {
    const ended = await cli.run(['batch'], {
      input: ndjson([
        { id: 'slow', script: 'import time; time.sleep(3)\nemit_result("slow")' },
        { id: 'quick', script: 'emit_result(x + 1)', inputs: { x: 1 }, mode: 'plan' },
        { id: '', script: '1 / 0' },
        { id: 'late', script: 'while True: pass', timeout_s: 0.3 },
        {
          id: 'files',
          script: 'import os\nopen("out.txt", "w").write(open("in/a").read() + str(os.access("in/a", os.X_OK)))',
          files: [{ path: 'in/a', content_base64: 'YWJj', mode: 0o755 }],
          collect: ['*.txt'],
          limits: { memory_bytes: 268_435_456, pids: 64 },
        },
        {
          id: 'secret',
          script: 'import os\nemit_result(len(os.environ["KEY"]))',
          secrets: { KEY: 'abcd' },
          required_secrets: ['KEY'],
        },
        { id: 'named', script: '', execution_id: '__proto__' },
        { id: 'unnamed', script: '', execution_id: null },
        { id: 'marked', script: '\uFEFFemit_result("a\\u2028b\\x85c")' },
      ]),
    })
    const lines = linesOf(ended)
    expect(ended.code).toBe(0)
    expect(lines).toHaveLength(9)
    expect(ended.stdout).not.toMatch(/[\u0085\u2028]/)
    expect(lines.findIndex(({ id }) => id === 'slow')).toBeGreaterThan(lines.findIndex(({ id }) => id === 'quick'))
    expect(byId(lines)).toMatchObject({
      slow: { status: 'completed', final_data: 'slow' },
      quick: { status: 'completed', final_data: 2 },
      '': { status: 'failed', error: 'ZeroDivisionError: division by zero' },
      late: { status: 'timed-out' },
      files: {
        status: 'step-done',
        files: [{ path: 'out.txt', content_base64: Buffer.from('abcTrue').toString('base64') }],
      },
      secret: { status: 'completed', final_data: 4 },
      named: { status: 'step-done', execution_id: '__proto__' },
      unnamed: { status: 'step-done' },
      marked: { status: 'completed', final_data: 'a\u2028b\u0085c' },
    })
  })

  test('a bad line is answered and the next one is served', async () => {
    const bad: [unknown, string][] = [
      ['{"id":"open"', 'the line is not JSON'],
      ['[1]', 'the line is not a JSON object'],
      [{ script: '1' }, 'the line has no "id"'],
      [{ id: 5, script: '1' }, 'id: it is not a string'],
      [{ id: 'a' }, 'the line has no "script"'],
      [{ id: 'b', script: 1 }, 'script: it is not a string'],
      [{ id: 'c', script: '', sript: '' }, 'no key "sript". Did you mean "script"?'],
      [{ id: 'd', script: '', limits: { memory: 1 } }, 'no key "limits.memory"'],
      [{ id: 'e', script: '', mode: 'plann' }, 'mode: "plann" is not a mode; use plan or interactive'],
      [{ id: 'f', script: '', policy: 'stritc' }, 'policy: "stritc" is not a policy; use off, standard or strict'],
      ...[0, -1, 'NaN', 1e308, '5', null, true].map((timeout, index): [unknown, string] => [
        { id: `t${index}`, script: '', timeout_s: timeout },
        'is not a number of seconds from 0.001 to 86400',
      ]),
      ...['', ' ', 'a\nb', '\0', { id: 1 }, 5].map((id, index): [unknown, string] => [
        { id: `x${index}`, script: '', execution_id: id },
        'execution_id: ',
      ]),
      [
        { id: 'g', script: '', limits: { memory_bytes: 100_000_000, disk_bytes: 90_000_000 } },
        'does not fit into a memory of',
      ],
      [{ id: 'h', script: '', limits: null }, 'limits: null is not an object'],
      [
        { id: 'i', script: '', files: [{ path: 'a', content_base64: '!' }] },
        'files[0].content_base64: it is not base64',
      ],
      [{ id: 'j', script: '', files: [{ path: '../a', content_base64: '' }] }, 'not a path in the workspace'],
      [{ id: 'k', script: '', required_secrets: ['__proto__', 'A=B'] }, 'required_secrets: not usable as names'],
      [{ id: 'l', script: '', inputs: { 'a b': 1 } }, 'inputs: "a b" is not a Python identifier'],
      [{ id: 'm', script: '', collect: ['../**'] }, 'collect[0]: '],
      [{ id: 'n', script: '', after: 'nowhere' }, 'it waits for the id "nowhere", which no line has'],
      [{ id: 'o', script: '', after: 'p' }, 'it waits for itself'],
      [{ id: 'p', script: '', same_sandbox_as: 'o' }, 'it waits for itself'],
    ]
    const good = { id: 'good', script: 'emit_result("served")' }
    const requests = [
      good,
      { ...good },
      ...bad.map(([request]) => request),
      { id: 'end', script: 'emit_result("served")' },
    ]
    const ended = await cli.run(['batch', '-'], { input: ndjson(requests) })
    const lines = linesOf(ended)
    expect(ended.code).toBe(0)
    expect(lines).toHaveLength(requests.length)
    expect(
      lines
        .filter(({ final_data: data }) => data === 'served')
        .map(({ id }) => String(id))
        .toSorted(),
    ).toEqual(['end', 'good'])
    const refused = lines
      .filter(({ status }) => status === 'invalid-request')
      .toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    expect(refused[0]).toMatchObject({
      id: 'good',
      line: 2,
      error: 'id: "good" is used more than once in this batch; give each request its own id',
    })
    const problems = bad.map(([request, problem], index) => {
      const id = typeof request === 'object' && request !== null && 'id' in request ? request.id : null
      return {
        id: typeof id === 'string' ? id : null,
        line: index + 3,
        error: expect.stringContaining(problem) as string,
      }
    })
    expect(refused.slice(1).map(({ id, line, error }) => ({ id, line, error }))).toEqual(problems)
  })

  test('`after` waits for the answer, `same_sandbox_as` for the same sandbox', async () => {
    const ended = await cli.run(['batch', '--concurrency', '3'], {
      input: ndjson([
        { id: 'third', script: 'emit_result(3)', after: 'second' },
        { id: 'same', script: 'emit_result(4)', same_sandbox_as: 'first' },
        { id: 'second', script: 'emit_result(2)', after: 'first' },
        { id: 'first', script: 'import time; time.sleep(0.2)\nemit_result(1)' },
      ]),
    })
    const lines = linesOf(ended)
    const order = lines.map(({ id }) => id)
    expect(order.filter((id) => id !== 'same')).toEqual(['first', 'second', 'third'])
    const { first, same } = byId(lines)
    expect(same?.sandbox?.id).toBe(first?.sandbox?.id)
    expect(same?.sandbox?.use).toBeGreaterThan(first?.sandbox?.use ?? 0)
  })

  test('a request is answered before the next line arrives', async () => {
    const running = cli.start(['batch'])
    running.child.stdin.write(ndjson([{ id: 'one', script: '' }]))
    await running.said('"id":"one"')
    running.child.stdin.end(ndjson([{ id: 'two', script: '', after: 'one' }]))
    const ended = await running.ended
    expect([ended.code, linesOf(ended).map(({ id }) => id)]).toEqual([0, ['one', 'two']])
  })

  test('with --out an interrupted batch resumes, and replaces a truncated line', async () => {
    const out = join(cli.directory, 'answers.jsonl')
    const requests = cli.file(
      'requests.jsonl',
      ndjson([
        { id: 'a', script: 'emit_result(1)' },
        'no json',
        { id: 'b', script: 'emit_result(2)' },
        { id: 'c', script: 'import time\nwhile not time.sleep(0.01): pass', timeout_s: 4, after: 'b' },
        { id: 'd', script: 'emit_result(4)', after: 'c' },
      ]),
    )
    const args = ['batch', requests, '--out', out]
    const first = cli.start(args)
    await until(() => {
      const written = existsSync(out) ? readFileSync(out, 'utf8') : ''
      return ['a', 'b'].every((id) => written.includes(`"id":"${id}"`))
    })
    first.child.kill('SIGINT')
    expect(await first.ended).toMatchObject({ code: 130, stdout: '' })

    const before = readFileSync(out, 'utf8')
    expect(linesOf({ stdout: before }).map(({ id }) => id)).toEqual([null, 'a', 'b'].toSorted(inOrderOf(before)))
    writeFileSync(out, before.slice(0, -20))
    expect(await cli.run(args)).toEqual({ code: 0, stdout: '', stderr: '' })
    const lines = linesOf({ stdout: readFileSync(out, 'utf8') })
    expect(lines.map(({ id }) => String(id)).toSorted()).toEqual(['a', 'b', 'c', 'd', 'null'])
    expect(byId(lines)).toMatchObject({ c: { status: 'timed-out' }, d: { final_data: 4 } })

    const complete = readFileSync(out, 'utf8')
    expect(await cli.run(args)).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(readFileSync(out, 'utf8')).toBe(complete)
  })

  test('with --out, rejected requests are tried again, and the same rejection is not written twice', async () => {
    const out = join(cli.directory, 'fixed.jsonl')
    const batch = async (...requests: unknown[]): Promise<Line[]> => {
      const before = existsSync(out) ? readFileSync(out, 'utf8') : ''
      const ended = await cli.run(['batch', '--out', out], { input: ndjson(requests) })
      expect(ended).toEqual({ code: 0, stdout: '', stderr: '' })
      const after = readFileSync(out, 'utf8')
      expect(after.startsWith(before)).toBe(true)
      return linesOf({ stdout: after.slice(before.length) })
    }
    const large = [{ path: 'a', content_base64: Buffer.alloc(3_000_000).toString('base64') }]
    const requests = [
      { id: 'bad', script: 1 },
      'no json',
      { id: 'full', script: '', limits: { disk_bytes: 1_048_576 }, files: large },
      { id: 'ok', script: 'emit_result(1)' },
    ]
    expect(byId(await batch(...requests))).toMatchObject({
      bad: { status: 'invalid-request', line: 1 },
      'line 2': { status: 'invalid-request' },
      full: { status: 'failed', error_kind: 'invalid_request' },
      ok: { status: 'completed' },
    })
    const fixed = [
      requests[0],
      { id: 'unheard', script: 'emit_result(2)' },
      { id: 'full', script: 'emit_result(3)' },
      requests[3],
    ]
    const again = await batch(...fixed)
    expect(again).toHaveLength(2)
    expect(byId(again)).toMatchObject({ unheard: { final_data: 2 }, full: { final_data: 3 } })
  })

  test('with --out, a request may come after one that an earlier batch answered', async () => {
    const out = join(cli.directory, 'continued.jsonl')
    const first = ndjson([
      { id: 'first', script: 'emit_result(1)' },
      { id: 'refused', script: 1 },
      { id: 'fixed', script: 1 },
    ])
    await cli.run(['batch', '--out', out], { input: first })
    const second = ndjson([
      { id: 'after first', script: 'emit_result(2)', after: 'first' },
      { id: 'same as first', script: 'emit_result(3)', same_sandbox_as: 'first' },
      { id: 'after refused', script: 'emit_result(4)', after: 'refused' },
      { id: 'after fixed', script: 'emit_result(5)', after: 'fixed' },
      { id: 'after nowhere', script: 'emit_result(6)', after: 'nowhere' },
      { id: 'fixed', script: 'emit_result(7)' },
    ])
    expect(await cli.run(['batch', '--out', out], { input: second })).toEqual({ code: 0, stdout: '', stderr: '' })
    const lines = linesOf({ stdout: readFileSync(out, 'utf8') }).slice(3)
    expect(byId(lines)).toMatchObject({
      'after first': { final_data: 2 },
      'same as first': { final_data: 3 },
      'after refused': { final_data: 4 },
      'after fixed': { final_data: 5 },
      'after nowhere': { error: 'it waits for the id "nowhere", which no line has' },
      fixed: { final_data: 7 },
    })
    const order = lines.map(({ id }) => id)
    expect(order.indexOf('after fixed')).toBeGreaterThan(order.indexOf('fixed'))
  })

  test('--out does not touch a file that holds something else', async () => {
    const out = cli.file('notes.txt', 'my notes')
    const { code, stderr } = await cli.run(['batch', '--out', out])
    expect([code, stderr]).toEqual([
      2,
      `sandglass: --out ${out}: its last line is not an answer of a batch; name another file\n`,
    ])
    expect(readFileSync(out, 'utf8')).toBe('my notes')
  })

  test('a signal cancels running requests; requests that had not started get no answer', async () => {
    const running = cli.start(['batch'])
    running.child.stdin.write(
      ndjson([
        { id: 'ready', script: 'emit_result(1)' },
        { id: 'endless', script: 'while True: pass', after: 'ready' },
        { id: 'waiting', script: '', after: 'endless' },
        { id: 'early', script: '', after: 'not read yet' },
      ]),
    )
    await running.said('"id":"ready"')
    running.child.kill('SIGTERM')
    const ended = await running.ended
    expect(ended.code).toBe(130)
    const answered = linesOf(ended).map(({ id, status }) => [id, status])
    // `endless` may not have got its sandbox yet.
    expect([
      [['ready', 'completed']],
      [
        ['ready', 'completed'],
        ['endless', 'cancelled'],
      ],
    ]).toContainEqual(answered)
  })
})

test.skipIf(skip)('the last line at a terminal tells the rate and the CPU time of a request', async () => {
  const requests = join(cli.directory, 'three.jsonl')
  const script = 'import time\nwhile time.process_time() < 0.2: pass'
  writeFileSync(requests, ndjson(['a', 'b', 'c'].map((id) => ({ id, script }))))
  const args = ['batch', requests, '--out', join(cli.directory, 'three-answers.jsonl'), '--policy', 'standard']
  const { code, stdout } = await runAtTerminal(cli, args, [], { NO_COLOR: '' })
  expect([code, stdout.split('\u001B[2K').at(-1)]).toEqual([
    0,
    expect.stringMatching(/^sandglass: 3 answered, 0 failed in 0:\d\d \(\d+\.\d\/s, \d+\.\d ms CPU each\)\r\n$/),
  ])
  expect(Number(/([\d.]+) ms CPU/.exec(stdout)?.[1])).toBeGreaterThanOrEqual(200)
})

/** Polls once per turn of the event loop. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(setImmediate)
}

function inOrderOf(text: string): (a: string | null, b: string | null) => number {
  const at = (id: string | null): number => text.indexOf(`"id":${JSON.stringify(id)}`)
  return (a, b) => at(a) - at(b)
}
