import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { jsonlStore, sqliteStore } from '../../../src/journal/index.ts'
import { journalDirectory } from './journal-directory.ts'
import { runIdAt, wholeRun } from './sample-events.ts'

const directory = journalDirectory()

describe('a read-only store (OR-06)', () => {
  test.each([
    ['jsonl', jsonlStore],
    ['sqlite', sqliteStore],
  ])('in %s returns the stored events, creates no files and rejects events', async (_, open) => {
    const place = join(directory(), 'place')
    const writing = open(place)
    for (const event of wholeRun(runIdAt(1))) await writing.append(event)
    const reading = open(place, { readOnly: true })
    expect(await reading.read(runIdAt(1))).toEqual(wholeRun(runIdAt(1)))
    for (const event of wholeRun(runIdAt(2))) await writing.append(event)
    expect((await reading.list()).map(({ runId }) => runId)).toEqual([runIdAt(2), runIdAt(1)])
    await writing.close()
    const before = await readdir(directory(), { recursive: true })
    expect(await reading.read(runIdAt(2))).toEqual(wholeRun(runIdAt(2)))
    const [event] = wholeRun(runIdAt(3))
    if (event === undefined) throw new Error('there is one')
    const refused = expect.objectContaining({
      code: 'journal_unusable',
      message: `the journal ${place} cannot be used: it was opened for reading only; open it without readOnly to change it`,
    }) as unknown
    expect(() => reading.append(event)).toThrow(refused)
    await expect(reading.remove(runIdAt(1))).rejects.toEqual(refused)
    await reading.close()
    expect(await readdir(directory(), { recursive: true })).toEqual(before)
  })

  test.each([
    ['jsonl', jsonlStore],
    ['sqlite', sqliteStore],
  ])('in %s does not create a missing file', async (_, open) => {
    const store = open(join(directory(), 'nowhere'), { readOnly: true })
    await expect(store.list()).rejects.toMatchObject({ code: 'journal_unusable' })
    expect(await readdir(directory())).toEqual([])
  })
})
