import { ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test, vi } from 'vitest'
import { askJudge, type Requester, type Judgement } from '../../../src/judge/index.ts'
import type { JudgeRequest } from '../../../src/judge/judge-process.ts'
import { leastOf } from '../../../src/testing/conformance/least-of.ts'
import { eventually } from '../../support/eventually.ts'
import { processOf } from '../../support/processes.ts'
import { stallDuring } from '../../support/stall.ts'

const DOOR = join(import.meta.dirname, '../../../src/judge/index.ts')
const MODULE = pathToFileURL(join(import.meta.dirname, 'sample-answers.main.ts'))

function ask(input: unknown, requester?: Requester): Promise<Judgement> {
  return askJudge({ module: MODULE, input: () => input, inputBytes: 0, deadlineMs: 300, requester })
}

/** The child processes of the judge that start from now on, and the requests that they get. */
function watchChildren(): { children: ChildProcess[]; requests: JudgeRequest[]; [Symbol.dispose]: () => void } {
  const children: ChildProcess[] = []
  const requests: JudgeRequest[] = []
  const starts = ChildProcess.prototype as unknown as { spawn: (this: ChildProcess, options: object) => number }
  const start = starts.spawn
  const spy = vi.spyOn(starts, 'spawn').mockImplementation(function spawn(this: ChildProcess, options) {
    const result = start.call(this, options)
    children.push(this)
    const send = this.send.bind(this) as (request: JudgeRequest, done: () => void) => boolean
    this.send = ((request: JudgeRequest, done: () => void) => {
      requests.push(request)
      return send(request, done)
    }) as ChildProcess['send']
    return result
  })
  return { children, requests, [Symbol.dispose]: () => spy.mockRestore() }
}

/** The process of an earlier test, which no test watches, ends after the answer to a large question. */
async function endEarlierProcess(): Promise<void> {
  await askJudge({ module: MODULE, input: () => 'large', inputBytes: 5 * 1024 * 1024, deadlineMs: 1000 })
}

/** The requests before the first one with this input. */
function requestsBefore(input: string, requests: readonly JudgeRequest[]): readonly JudgeRequest[] {
  const at = requests.findIndex((request) => request.input === input)
  expect(at).toBeGreaterThan(0)
  return requests.slice(0, at)
}

/** The time that tries were allowed, but for those of a second: these are of the other process. */
function shortTriesMs(requests: readonly JudgeRequest[]): number {
  return requests.reduce((sum, { interruptMs }) => sum + (interruptMs < 1000 ? interruptMs : 0), 0)
}

/** Asks a question while forty loop that are of a kind of their own. Milliseconds until it is answered, and until all are settled. */
async function timesBesideLoops(kind: string): Promise<{ otherMs: number; longestMs: number }> {
  await endEarlierProcess()
  using watched = watchChildren()
  const given = { module: MODULE, inputBytes: 0, deadlineMs: 1000 }
  const loops = Array.from({ length: 40 }, async () => {
    const started = performance.now()
    const { kind: outcome } = await askJudge({ ...given, input: () => 'loop', requester: { isOver: false }, kind })
    return { outcome, ms: performance.now() - started }
  })
  const started = performance.now()
  expect(await askJudge({ ...given, input: () => 'next', kind: 'next' })).toEqual({ kind: 'answer', text: 'next' })
  const otherMs = performance.now() - started
  // One loop of them overran before it.
  expect(shortTriesMs(requestsBefore('next', watched.requests))).toBeLessThanOrEqual(200 + 5)
  const ended = await Promise.all(loops)
  expect([...new Set(ended.map(({ outcome }) => outcome))].toSorted()).toEqual(['busy', 'timed-out'])
  return { otherMs, longestMs: Math.max(...ended.map(({ ms }) => ms)) }
}

describe("the judge's process", () => {
  test('answers with a short text', async () => {
    expect(await ask('a text')).toEqual({ kind: 'answer', text: 'a text' })
    const long = await ask('x'.repeat(100_000))
    expect(long.kind === 'answer' ? long.text.length : long).toBe(4000)
  })

  test.each(['loop', 'backtrack'])(
    'is killed when it overruns its deadline, and the next question is answered: %s',
    async (what) => {
      const stall = await stallDuring(async () => expect(await ask(what)).toEqual({ kind: 'timed-out' }))
      expect(stall).toBeLessThan(250)
      expect(await ask('next')).toEqual({ kind: 'answer', text: 'next' })
    },
  )

  test('has its own memory limit', async () => {
    const before = process.memoryUsage().rss
    const judged = await askJudge({ module: MODULE, input: () => 'memory', inputBytes: 0, deadlineMs: 20_000 })
    expect(judged).toEqual({ kind: 'out-of-memory' })
    expect((process.memoryUsage().rss - before) / 1024 / 1024).toBeLessThan(128)
    expect(await ask('next')).toEqual({ kind: 'answer', text: 'next' })
  })

  test('reports a failure in a short text', async () => {
    const failed = await ask('throw')
    expect(failed.kind === 'failed' && failed.text.slice(0, 12)).toBe('Error: xxxxx')
    expect(failed.kind === 'failed' && failed.text.length).toBe(4000)
    const missing = await askJudge({
      module: new URL('file:///nowhere.js'),
      input: () => 1,
      inputBytes: 0,
      deadlineMs: 300,
    })
    expect(missing.kind).toBe('failed')
  })

  test('reports an input that cannot be sent', async () => {
    const failed = await ask(() => 1)
    expect(failed.kind === 'failed' && failed.text).toContain('could not be cloned')
  })

  test("has nothing of the host's environment", async () => {
    const { text: names } = (await ask('environment')) as { text: string }
    // The shell that starts it may set these.
    const own = new Set(['PWD', 'OLDPWD', 'SHLVL', '_'])
    expect((JSON.parse(names) as string[]).filter((name) => !own.has(name))).toEqual([])
  })

  test('serves callers in turn, and none that has ended', async () => {
    await endEarlierProcess()
    using watched = watchChildren()
    const [many, one, gone] = [{ isOver: false }, { isOver: false }, { isOver: true }]
    const told = async (name: string, requester: Requester): Promise<string> =>
      `${name} ${(await ask(name, requester)).kind}`
    const answers = [...['a1', 'a2', 'a3'].map((name) => told(name, many)), told('gone', gone), told('b', one)]
    expect(await Promise.all(answers)).toEqual(['a1 answer', 'a2 answer', 'a3 answer', 'gone timed-out', 'b answer'])
    // On a busy machine, a question is tried twice.
    expect([...new Set(watched.requests.map(({ input }) => input))]).toEqual(['a1', 'a2', 'b', 'a3'])
  })

  test('answers a quick question before earlier slow ones, and delays none for long', async () => {
    const started = performance.now()
    const slow = Array.from({ length: 5 }, async () => {
      const question = {
        module: MODULE,
        input: () => 'loop',
        inputBytes: 0,
        deadlineMs: 1500,
        requester: { isOver: false },
      }
      const { kind } = await askJudge(question)
      return { kind, ms: performance.now() - started }
    })
    const quick = await ask('next', { isOver: false })
    const quickMs = performance.now() - started
    expect(quick).toEqual({ kind: 'answer', text: 'next' })
    const ended = await Promise.all(slow)
    expect([...new Set(ended.map(({ kind }) => kind))].toSorted()).toEqual(['busy', 'timed-out'])
    expect(ended.filter(({ ms }) => ms < quickMs).length).toBeLessThanOrEqual(1)
  })

  test('answers a question of another kind before all that are of a kind that overran, and settles each within 4.5 s', async () => {
    let round = 0
    const partOfBounds = async (): Promise<number> => {
      const { otherMs, longestMs } = await timesBesideLoops(`loop ${(round += 1)}`)
      return Math.max(otherMs / 1500, longestMs / 4500)
    }
    expect(await leastOf(3, 1, partOfBounds)).toBeLessThan(1)
  })

  test.each([
    ['a quick one', 'next'],
    ['one whose process gets no processor at first', 'starved'],
  ])('gives each of forty questions of its own kind a few milliseconds before %s, and no more', async (_, text) => {
    const most = 200 + 40 * 5
    let round = 0
    const triesUntilAnswer = async (): Promise<number> => {
      await endEarlierProcess()
      using watched = watchChildren()
      const given = { module: MODULE, inputBytes: 0, deadlineMs: 1000, kind: `equal ${(round += 1)}` }
      const loops = Array.from({ length: 40 }, () =>
        askJudge({ ...given, input: () => 'backtrack', requester: { isOver: false } }),
      )
      expect(await askJudge({ ...given, input: () => text, requester: { isOver: false } })).toEqual({
        kind: 'answer',
        text,
      })
      const requests = watched.requests.slice()
      expect(shortTriesMs(requestsBefore(text, requests))).toBeLessThanOrEqual(most)
      await Promise.all(loops)
      return shortTriesMs(requests)
    }
    // A process that gets no processor for longer tries the question once more, after all others.
    const allowedMs = await leastOf(3, most, triesUntilAnswer)
    expect(allowedMs).toBeGreaterThan(0)
    expect(allowedMs).toBeLessThanOrEqual(most)
  })

  test('is replaced when it has ended while idle', async () => {
    const askProgram = (program: string, inputBytes = 0): Promise<Judgement> =>
      askJudge({
        module: new URL(`data:text/javascript,${encodeURIComponent(program)}`),
        input: () => null,
        inputBytes,
        deadlineMs: 5000,
      })
    // The process of an earlier test ends after the answer to a large question.
    await askProgram('export const answer = () => "large"', 5 * 1024 * 1024)
    using watched = watchChildren()
    expect(
      await askProgram('export const answer = () => { setImmediate(() => process.exit()); return "last" }'),
    ).toEqual({ kind: 'answer', text: 'last' })
    const [child] = watched.children
    if (child === undefined) throw new Error('no process was started')
    if (child.exitCode === null) await once(child, 'exit')
    expect(await askProgram('export const answer = () => "next"')).toEqual({ kind: 'answer', text: 'next' })
  })

  // V8 ends a process in which a native step outgrows the heap, even where that is the heap of a thread.
  test.each(['array', 'text'])('may outgrow its heap in one native step, and the host lives on: %s', async (what) => {
    const judged = await askJudge({ module: MODULE, input: () => `native ${what}`, inputBytes: 0, deadlineMs: 20_000 })
    expect(judged).toEqual({ kind: 'out-of-memory' })
    expect(await ask('next')).toEqual({ kind: 'answer', text: 'next' })
  })

  test('ends soon after its host, even during a question', async () => {
    const told = join(await mkdtemp(join(tmpdir(), 'sandglass-test-')), 'pid')
    const program = `import { writeFileSync } from 'node:fs'
      export const answer = (path) => { writeFileSync(path, String(process.pid)); for (;;); }`
    const script = `
      const { askJudge } = await import(${JSON.stringify(DOOR)})
      const module = new URL(${JSON.stringify(`data:text/javascript,${encodeURIComponent(program)}`)})
      await askJudge({ module, input: () => ${JSON.stringify(told)}, inputBytes: 0, deadlineMs: 2000 })`
    const host = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'ignore' })
    const pid = Number(
      await vi.waitUntil(() => (existsSync(told) && readFileSync(told, 'utf8')) || undefined, { timeout: 10_000 }),
    )
    host.kill('SIGKILL')
    await once(host, 'exit')
    expect(await eventually(() => (processOf(pid) === undefined ? undefined : 'it lives on'), 5000)).toBe(undefined)
    await rm(dirname(told), { recursive: true })
  })

  test('does not keep a process alive, but does not let it exit during a question', () => {
    const script = `
      const { askJudge } = await import(${JSON.stringify(DOOR)})
      const module = new URL(${JSON.stringify(MODULE.href)})
      console.log((await askJudge({ module, input: () => 'text', inputBytes: 0, deadlineMs: 5000 })).text)`
    const start = performance.now()
    const node = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
    expect([node.stdout, node.stderr, node.status]).toEqual(['text\n', '', 0])
    expect(performance.now() - start).toBeLessThan(8000)
  })
})
