import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { jsonlStore, recordOf, sqliteStore } from '../../../src/journal/index.ts'
import { journalDirectory } from './journal-directory.ts'
import { eventsOf, runEnded, runIdAt, runStarted, scriptGenerated, wholeRun } from './sample-events.ts'
import { startsWriters } from './writer-process.ts'

const directory = journalDirectory()
const startWriter = startsWriters()

describe('a process that is killed during a run (OR-06)', () => {
  test.each([
    ['jsonl', jsonlStore],
    ['sqlite', sqliteStore],
  ])('leaves a journal in %s that is readable and reported as unfinished', async (kind, open) => {
    const place = join(directory(), 'place')
    const writer = startWriter(kind, place, runIdAt(1), '0')
    await writer.said('ready')
    writer.begin()
    await writer.said('written')
    await writer.kill()
    const store = open(place)
    const events = await store.read(runIdAt(1))
    expect(events.length).toBeGreaterThanOrEqual(6)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index))
    expect(events.slice(0, 2).map(({ type }) => type)).toEqual(['run_started', 'script_generated'])
    const record = recordOf(events)
    expect(record).toMatchObject({
      runId: runIdAt(1),
      status: 'unfinished',
      success: false,
      error: 'the journal has no end: the process ended early, or the task is still going',
    })
    expect(await store.list()).toMatchObject([{ runId: runIdAt(1) }])
    for (const event of wholeRun(runIdAt(2))) await store.append(event)
    expect(recordOf(await store.read(runIdAt(2))).status).toBe('completed')
    await store.close()
  })
})

test('two processes open and write one SQLite file at the same time (OR-06)', async () => {
  const path = join(directory(), 'runs.db')
  const writers = [1, 2].map((second) => startWriter('sqlite', path, runIdAt(second), '200'))
  await Promise.all(writers.map((writer) => writer.said('ready')))
  for (const writer of writers) writer.begin()
  expect(await Promise.all(writers.map((writer) => writer.end()))).toEqual([0, 0])
  const store = sqliteStore(path)
  for (const second of [1, 2]) {
    const bodies = [runStarted(), ...Array.from({ length: 200 }, () => scriptGenerated()), runEnded()]
    expect(await store.read(runIdAt(second))).toEqual(eventsOf(runIdAt(second), bodies))
  }
  await store.close()
})
