import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sqliteStore } from '../../../src/journal/index.ts'
import { journalDirectory } from './journal-directory.ts'
import { runIdAt, wholeRun } from './sample-events.ts'

const directory = journalDirectory()
const COLUMNS = 'run_id, seq, type, at, body'
const ENDLESS = `WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r)
  SELECT 'x' AS run_id, n AS seq, 'x' AS type, 'x' AS at, 'x' AS body FROM r`
const TRIGGER = `CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END`

describe('a store in SQLite', () => {
  test.each([
    ['of something else', 'CREATE TABLE users (name TEXT); INSERT INTO users VALUES (1)'],
    ['with events of something else', 'CREATE TABLE events (id INTEGER, body TEXT)'],
    ['whose events are a view without an end', `CREATE VIEW events AS ${ENDLESS}`],
    ['with a virtual table', `CREATE  VIRTUAL TABLE events USING fts5(${COLUMNS})`],
    ['without the key', 'CREATE TABLE events (run_id TEXT, seq INTEGER, type TEXT, at TEXT, body TEXT)'],
    ['with a check', `CREATE TABLE events (${COLUMNS}, CHECK (body LIKE '%_%_%_%_%'))`],
    ['with a trigger', `CREATE TABLE events (${COLUMNS}); ${TRIGGER}`],
  ])('refuses a database %s, and leaves it as it is', async (_, sql) => {
    const path = join(directory(), 'foreign.db')
    const { DatabaseSync } = await import('node:sqlite')
    const database = new DatabaseSync(path)
    database.exec(sql)
    database.close()
    const before = await readFile(path)
    const refused = expect.objectContaining({
      code: 'journal_unusable',
      message: `the journal ${path} cannot be used: it is a database, but not a journal of Sandglass; use another path`,
    }) as unknown
    expect(() => sqliteStore(path)).toThrow(refused)
    await expect(sqliteStore(path, { readOnly: true }).list()).rejects.toEqual(refused)
    expect([await readFile(path), await readdir(directory())]).toEqual([before, ['foreign.db']])
  })

  test('reads a long task with turns of the event loop in between', async () => {
    const path = join(directory(), 'long.db')
    const store = sqliteStore(path)
    const [event] = wholeRun(runIdAt(1))
    if (event === undefined) throw new Error('there is one')
    const { DatabaseSync } = await import('node:sqlite')
    const database = new DatabaseSync(path)
    const numbers = 'WITH RECURSIVE n(seq) AS (SELECT 0 UNION ALL SELECT seq + 1 FROM n WHERE seq < 7999)'
    const rows = `${numbers} SELECT ?, seq, 'log', '', json_set(?, '$.seq', seq) FROM n`
    database.prepare(`INSERT INTO events (${COLUMNS}) ${rows}`).run(event.run_id, JSON.stringify(event))
    database.close()
    let turns = 0
    const timer = setInterval(() => (turns += 1), 0)
    const { length } = await store.read(event.run_id)
    clearInterval(timer)
    expect([length, turns > 0]).toEqual([8000, true])
    await store.close()
  })

  test('takes an empty file', async () => {
    const path = join(directory(), 'empty.db')
    await writeFile(path, '')
    const store = sqliteStore(path)
    for (const event of wholeRun(runIdAt(1))) await store.append(event)
    expect(await store.list()).toHaveLength(1)
    await store.close()
  })

  test('can be read by its owner only', async () => {
    const path = join(directory(), 'own', 'runs.db')
    const store = sqliteStore(path)
    for (const event of wholeRun(runIdAt(1))) await store.append(event)
    for (const end of ['', '-wal', '-shm']) expect((await stat(`${path}${end}`)).mode & 0o777).toBe(0o600)
    await store.close()
  })

  test('that is not a database, or that cannot be created, is unusable', async () => {
    const path = join(directory(), 'file')
    await writeFile(path, 'this is no database, and it is long enough to be seen as none'.repeat(100))
    for (const wrong of [path, join(path, 'below')]) {
      expect(() => sqliteStore(wrong)).toThrow(expect.objectContaining({ code: 'journal_unusable' }))
    }
    expect(await readFile(path, 'utf8')).toContain('this is no database')
  })

  test('that is closed, or has an event twice, is unusable', async () => {
    const store = sqliteStore(join(directory(), 'runs.db'))
    const [event] = wholeRun(runIdAt(1))
    if (event === undefined) throw new Error('there is one')
    await store.append(event)
    expect(() => store.append(event)).toThrow(expect.objectContaining({ code: 'journal_unusable' }))
    await store.close()
    await expect(store.read(runIdAt(1))).rejects.toMatchObject({ code: 'journal_unusable' })
  })

  test('leaves out a row that is not an event', async () => {
    const path = join(directory(), 'runs.db')
    const store = sqliteStore(path)
    for (const event of wholeRun(runIdAt(1))) await store.append(event)
    const { DatabaseSync } = await import('node:sqlite')
    const database = new DatabaseSync(path)
    database.exec("UPDATE events SET body = '{' WHERE seq = 4")
    database.close()
    expect(await store.read(runIdAt(1))).toEqual(wholeRun(runIdAt(1)).slice(0, 4))
    await store.close()
  })
})
