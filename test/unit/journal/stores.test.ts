import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { jsonlStore, type JournalStore, memoryStore, newRunId, sqliteStore } from '../../../src/journal/index.ts'
import { journalDirectory } from './journal-directory.ts'
import { eventsOf, PLACE, runEnded, runIdAt, runStarted, wholeRun } from './sample-events.ts'

const directory = journalDirectory()

const MAKERS: Readonly<Record<string, () => JournalStore>> = {
  'in memory': () => memoryStore(),
  'in a directory': () => jsonlStore(join(directory(), 'deep', 'er')),
  'in SQLite': () => sqliteStore(join(directory(), 'deep', 'runs.db')),
  'in SQLite in memory': () => sqliteStore(':memory:'),
}

describe.each(Object.entries(MAKERS))('a store %s (OR-06)', (_, make) => {
  let store: JournalStore
  beforeEach(() => {
    store = make()
  })
  afterEach(() => store.close())

  test('returns the events of a run in their order', async () => {
    const events = wholeRun(runIdAt(1))
    for (const event of events) await store.append(event)
    expect(await store.read(runIdAt(1))).toEqual(events)
  })

  test('returns the events of reviews and of second runs, too', async () => {
    const sandbox = { engine: 'local', level: 'kernel', python: '3.12.0', limits_enforced: [], network: 'none' }
    const proposal = { proposal_id: 'p', plan: '', script: '1', sha256: '', dependencies: [], tools: [], sandbox }
    const decision = { proposal_id: 'p', decision: 'accept', by: null, text: null, script: null, waited_ms: 1 }
    const events = eventsOf(runIdAt(1), [
      runStarted(),
      { type: 'script_proposed', ...PLACE, ...proposal, problem: null },
      { type: 'proposal_decided', ...PLACE, ...decision },
      { type: 'script_rerun', ...PLACE, reason: 'lost' },
      runEnded(),
    ])
    for (const event of events) await store.append(event)
    expect(await store.read(runIdAt(1))).toEqual(events)
  })

  test('separates two concurrent runs, and lists the newest first', async () => {
    const [older, newer] = [wholeRun(runIdAt(1)), wholeRun(runIdAt(2))]
    for (const [index, event] of newer.entries()) {
      await store.append(event)
      const other = older[index]
      if (other !== undefined) await store.append(other)
    }
    expect(await store.read(runIdAt(1))).toEqual(older)
    expect(await store.read(runIdAt(2))).toEqual(newer)
    expect(await store.list()).toEqual([
      { runId: runIdAt(2), startedAt: '2026-01-02T03:04:02.000Z' },
      { runId: runIdAt(1), startedAt: '2026-01-02T03:04:01.000Z' },
    ])
  })

  test('lists the requested number of runs', async () => {
    for (const second of [1, 2, 3]) for (const event of wholeRun(runIdAt(second))) await store.append(event)
    const listIds = async (limit: number | undefined): Promise<string[]> =>
      (await store.list({ limit })).map(({ runId }) => runId)
    expect(await listIds(2)).toEqual([runIdAt(3), runIdAt(2)])
    expect(await listIds(0)).toEqual([])
    expect(await listIds(99)).toEqual([runIdAt(3), runIdAt(2), runIdAt(1)])
    expect(await listIds(undefined)).toEqual([runIdAt(3), runIdAt(2), runIdAt(1)])
    for (const wrong of [-1, 1.5, Number.NaN]) await expect(store.list({ limit: wrong })).rejects.toThrow(TypeError)
  })

  test('removes a run and leaves the others', async () => {
    for (const second of [1, 2]) for (const event of wholeRun(runIdAt(second))) await store.append(event)
    await store.remove(runIdAt(1))
    await store.remove(runIdAt(1))
    expect(await store.read(runIdAt(1))).toEqual([])
    expect((await store.list()).map(({ runId }) => runId)).toEqual([runIdAt(2)])
  })

  test('removes a run that is being written; later events start a new one', async () => {
    const [first, second] = wholeRun(runIdAt(1))
    if (first === undefined || second === undefined) throw new Error('a run has events')
    await store.append(first)
    await store.remove(runIdAt(1))
    await store.append(second)
    expect(await store.read(runIdAt(1))).toEqual([second])
  })

  test('has no events of an unknown run', async () => {
    expect(await store.read(newRunId())).toEqual([])
    expect(await store.list()).toEqual([])
  })

  test('stores any text', async () => {
    const odd = '\u2028\n\r\0"\\ \uD83D é😀 </script>'
    const events = eventsOf(runIdAt(1), [runStarted({ task: odd }), runEnded({ final_data: { [odd]: [odd] } })])
    for (const event of events) await store.append(event)
    expect(await store.read(runIdAt(1))).toEqual(events)
  })

  test.each(['../../x', '/etc/passwd', '', '.', 'a\0b', runIdAt(1) + '/../x', `${runIdAt(1)}\n`, 'x'.repeat(5000)])(
    'refuses %j as the id of a run',
    async (hostile) => {
      const [event] = eventsOf(hostile, [runStarted()])
      if (event === undefined) throw new Error('there is one')
      await expect((async () => store.append(event))()).rejects.toThrow(/^runId: .{1,90} is not the id of a task$/s)
      await expect(store.read(hostile)).rejects.toThrow(TypeError)
      await expect(store.remove(hostile)).rejects.toThrow(TypeError)
    },
  )

  test('can be closed more than once', async () => {
    for (const event of wholeRun(runIdAt(1)).slice(0, 2)) await store.append(event)
    await store.close()
    await expect(store.close()).resolves.toBe(undefined)
  })
})

describe('a store in memory', () => {
  test('drops the oldest runs', async () => {
    const store = memoryStore({ maxRuns: 2 })
    for (const second of [1, 2, 3]) for (const event of wholeRun(runIdAt(second))) await store.append(event)
    expect((await store.list()).map(({ runId }) => runId)).toEqual([runIdAt(3), runIdAt(2)])
    expect(await store.read(runIdAt(1))).toEqual([])
    expect(() => memoryStore({ maxRuns: 0 })).toThrow('maxRuns: 0 is not a whole number of at least 1')
  })
})
