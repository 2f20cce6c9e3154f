import { execFileSync } from 'node:child_process'
import { appendFile, mkdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { jsonlStore, recordOf } from '../../../src/journal/index.ts'
import { journalDirectory } from './journal-directory.ts'
import { runIdAt, wholeRun } from './sample-events.ts'

const directory = journalDirectory()

describe('a store in a directory', () => {
  const fileOf = (second: number): string => join(directory(), `${runIdAt(second)}.jsonl`)

  test('skips lines that are not events: a truncated last line, and garbage', async () => {
    const store = jsonlStore(directory())
    const events = wholeRun(runIdAt(1)).slice(0, 3)
    for (const event of events) await store.append(event)
    await store.close()
    const later = { v: 1, run_id: runIdAt(1), seq: 9, at: '2027-01-01T00:00:00.000Z', type: 'from_the_future' }
    for (const line of ['garbage', '5', 'null', '[]', '{}', '{"v":2}', '\0\0\0', JSON.stringify(later)]) {
      await appendFile(fileOf(1), `${line}\n`)
    }
    await appendFile(fileOf(1), Buffer.from([0xff, 0xfe, 0x0a]))
    await appendFile(fileOf(1), JSON.stringify(wholeRun(runIdAt(1))[3]).slice(0, 60))
    expect(await store.read(runIdAt(1))).toEqual(events)
    expect(recordOf(await store.read(runIdAt(1))).status).toBe('unfinished')
  })

  test('does not list files that are not journals', async () => {
    await writeFile(join(directory(), 'notes.jsonl'), '')
    await writeFile(join(directory(), `${runIdAt(1)}.txt`), '')
    await writeFile(fileOf(2), '')
    expect((await jsonlStore(directory()).list()).map(({ runId }) => runId)).toEqual([runIdAt(2)])
  })

  test('reads nothing from pipes, sockets, devices, loops and directories in place of journals', async () => {
    execFileSync('mkfifo', [fileOf(1)])
    await symlink('/dev/zero', fileOf(2))
    await symlink(fileOf(3), fileOf(3))
    await mkdir(fileOf(4))
    const server = createServer().listen(fileOf(5))
    await once(server, 'listening')
    const store = jsonlStore(directory(), { readOnly: true })
    const listed = await store.list()
    expect(listed).toHaveLength(5)
    for (const { runId } of listed) expect(await store.read(runId)).toEqual([])
    server.close()
  })

  test('keeps few files open, and writes each event at once', async () => {
    const store = jsonlStore(directory())
    const ids = Array.from({ length: 100 }, (_, index) => runIdAt(1, index.toString(16).padStart(8, '0')))
    for (let seq = 0; seq < 3; seq += 1) {
      for (const runId of ids) {
        const event = wholeRun(runId)[seq]
        if (event !== undefined) await store.append(event)
      }
    }
    for (const runId of ids) expect(await store.read(runId)).toEqual(wholeRun(runId).slice(0, 3))
    await store.close()
  })

  test('can be read by its owner only', async () => {
    const store = jsonlStore(join(directory(), 'own'))
    for (const event of wholeRun(runIdAt(1))) await store.append(event)
    expect((await stat(join(directory(), 'own'))).mode & 0o777).toBe(0o700)
    expect((await stat(join(directory(), 'own', `${runIdAt(1)}.jsonl`))).mode & 0o777).toBe(0o600)
  })

  test('is unusable if its directory cannot be created', async () => {
    const file = join(directory(), 'file')
    await writeFile(file, '')
    expect(() => jsonlStore(join(file, 'below'))).toThrow(expect.objectContaining({ code: 'journal_unusable' }))
    const store = jsonlStore(join(directory(), 'gone'))
    await rm(join(directory(), 'gone'), { recursive: true })
    const [event] = wholeRun(runIdAt(1))
    if (event === undefined) throw new Error('there is one')
    expect(() => store.append(event)).toThrow(expect.objectContaining({ code: 'journal_unusable' }))
    await expect(store.list()).rejects.toMatchObject({ code: 'journal_unusable' })
  })
})
