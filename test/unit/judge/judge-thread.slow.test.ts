import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { describe, expect, test, vi } from 'vitest'
import { askThread, type Requester, type Judgement } from '../../../src/judge/index.ts'
import type { ThreadRequest } from '../../../src/judge/judge-thread.ts'
import { stallDuring } from '../../support/stall.ts'

const DOOR = join(import.meta.dirname, '../../../src/judge/index.ts')
const MODULE = pathToFileURL(join(import.meta.dirname, 'sample-answers.main.ts'))

function ask(input: unknown, requester?: Requester): Promise<Judgement> {
  return askThread({ module: MODULE, input: () => input, inputBytes: 0, deadlineMs: 300, requester })
}

describe("the judge's thread", () => {
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
    const judged = await askThread({ module: MODULE, input: () => 'memory', inputBytes: 0, deadlineMs: 20_000 })
    expect(judged).toEqual({ kind: 'out-of-memory' })
    expect((process.memoryUsage().rss - before) / 1024 / 1024).toBeLessThan(128)
    expect(await ask('next')).toEqual({ kind: 'answer', text: 'next' })
  })

  test('reports a failure in a short text', async () => {
    const failed = await ask('throw')
    expect(failed.kind === 'failed' && failed.text.slice(0, 12)).toBe('Error: xxxxx')
    expect(failed.kind === 'failed' && failed.text.length).toBe(4000)
    const missing = await askThread({
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

  test('has an empty environment', async () => {
    expect(await ask('environment')).toEqual({ kind: 'answer', text: '{}' })
  })

  test('serves callers in turn, and none that has ended', async () => {
    const [many, one, gone] = [{ isOver: false }, { isOver: false }, { isOver: true }]
    const order: string[] = []
    const told = (name: string, requester: Requester): Promise<unknown> =>
      ask(name, requester).then(({ kind }) => order.push(`${name} ${kind}`))
    await Promise.all([...['a1', 'a2', 'a3'].map((name) => told(name, many)), told('gone', gone), told('b', one)])
    expect(order).toEqual(['a1 answer', 'a2 answer', 'gone timed-out', 'b answer', 'a3 answer'])
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
      const { kind } = await askThread(question)
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
    const loops = Array.from({ length: 40 }, async () => {
      const started = performance.now()
      const { kind } = await askThread({
        module: MODULE,
        input: () => 'loop',
        inputBytes: 0,
        deadlineMs: 1000,
        requester: { isOver: false },
        kind: 'loop',
      })
      return { kind, ms: performance.now() - started }
    })
    const started = performance.now()
    const other = await askThread({
      module: MODULE,
      input: () => 'next',
      inputBytes: 0,
      deadlineMs: 1000,
      kind: 'next',
    })
    expect(other).toEqual({ kind: 'answer', text: 'next' })
    expect(performance.now() - started).toBeLessThan(1500)
    const ended = await Promise.all(loops)
    expect([...new Set(ended.map(({ kind }) => kind))].toSorted()).toEqual(['busy', 'timed-out'])
    expect(Math.max(...ended.map(({ ms }) => ms))).toBeLessThan(4500)
  })

  test.each([
    ['a quick one', 'next'],
    ['one whose thread gets no processor at first', 'starved'],
  ])('gives each of forty questions of its own kind a few milliseconds before %s, and no more', async (_, text) => {
    const given = { module: MODULE, inputBytes: 0, deadlineMs: 1000, kind: 'equal' }
    const requests = vi.spyOn(Worker.prototype, 'postMessage')
    const loops = Array.from({ length: 40 }, () =>
      askThread({ ...given, input: () => 'backtrack', requester: { isOver: false } }),
    )
    expect(await askThread({ ...given, input: () => text, requester: { isOver: false } })).toEqual({
      kind: 'answer',
      text,
    })
    const allowedMs = requests.mock.calls.map(([request]) => (request as ThreadRequest).interruptMs)
    requests.mockRestore()
    // The first one was alone. Tries of a second are those of the other thread.
    expect(allowedMs.filter((ms) => ms < 1000).reduce((sum, ms) => sum + ms, 0)).toBeLessThanOrEqual(200 + 40 * 5)
    await Promise.all(loops)
  })

  test('is replaced when it has ended while idle', async () => {
    const askProgram = (program: string, inputBytes = 0): Promise<Judgement> =>
      askThread({
        module: new URL(`data:text/javascript,${encodeURIComponent(program)}`),
        input: () => null,
        inputBytes,
        deadlineMs: 5000,
      })
    // The thread of an earlier test ends after the answer to a large question.
    await askProgram('export const answer = () => "large"', 5 * 1024 * 1024)
    const started = once(process, 'worker') as Promise<[Worker]>
    expect(
      await askProgram('export const answer = () => { setImmediate(() => process.exit()); return "last" }'),
    ).toEqual({ kind: 'answer', text: 'last' })
    const [worker] = await started
    await once(worker, 'exit')
    expect(await askProgram('export const answer = () => "next"')).toEqual({ kind: 'answer', text: 'next' })
  })

  test('does not keep a process alive, but does not let it exit during a question', () => {
    const script = `
      const { askThread } = await import(${JSON.stringify(DOOR)})
      const module = new URL(${JSON.stringify(MODULE.href)})
      console.log((await askThread({ module, input: () => 'text', inputBytes: 0, deadlineMs: 5000 })).text)`
    const start = performance.now()
    const node = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
    expect([node.stdout, node.stderr, node.status]).toEqual(['text\n', '', 0])
    expect(performance.now() - start).toBeLessThan(8000)
  })
})
