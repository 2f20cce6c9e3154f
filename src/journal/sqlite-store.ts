import { closeSync, openSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, resolve } from 'node:path'
import type * as Sqlite from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { makeDirectory } from '../support/index.ts'
import { parseEvents } from './parse-event.ts'
import { checkRunId, startOfRunId } from './run-id.ts'
import { checkLimit, type JournalStore, type StoreOptions, toJournalError } from './store.ts'

const TABLE = `events (
    run_id TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, at TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
  ) WITHOUT ROWID`
const INDEX = 'runs ON events (at, run_id) WHERE seq = 0'
const SCHEMA = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS ${TABLE};
  CREATE INDEX IF NOT EXISTS ${INDEX};`
/** The definitions as SQLite stores them. The index is missing while another process creates the database. */
const DEFINITIONS: readonly string[] = [`CREATE TABLE ${TABLE}`, `CREATE INDEX ${INDEX}`]
const INSERT = 'INSERT INTO events (run_id, seq, type, at, body) VALUES (?, ?, ?, ?, ?)'
/** Selects one row at a time, because all rows of a task at once would block the host. */
const SELECT = 'SELECT seq, body FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT 1'
/** Finds all definitions that could run code: a view, a trigger, a CHECK or an index evaluates any expression of its author. */
const DEFINED =
  "SELECT sql FROM sqlite_master WHERE type IN ('view', 'trigger') OR tbl_name = 'events' COLLATE NOCASE LIMIT 3"
const RUNS = 'SELECT run_id, at FROM events WHERE seq = 0 ORDER BY at DESC, run_id DESC LIMIT ?'
const NOT_OURS = 'it is a database, but not a journal of Sandglass; use another path'

/**
 * Keeps tasks in a SQLite database (Node's own `node:sqlite`), several processes at a time. A process that is killed loses
 * no event; a machine that loses power may lose the last events.
 * @param path a file, which only its owner can access if it is new, or `:memory:`.
 * @throws SandglassError `journal_unusable` if it cannot be opened, or is another database.
 */
export function sqliteStore(path: string, { readOnly = false }: StoreOptions = {}): JournalStore {
  return readOnly ? readingStore(path) : writingStore(path)
}

function writingStore(path: string): JournalStore {
  const database = attempt(path, () => openForWriting(path))
  const insert = database.prepare(INSERT)
  const select = database.prepare(SELECT)
  const runs = database.prepare(RUNS)
  const remove = database.prepare('DELETE FROM events WHERE run_id = ?')
  let isOpen = true
  return {
    append(event) {
      checkRunId(event.run_id)
      attempt(path, () => insert.run(event.run_id, event.seq, event.type, event.at, JSON.stringify(event)))
    },
    async read(runId) {
      checkRunId(runId)
      return readRows(path, select, runId)
    },
    async list({ limit } = {}) {
      const max = checkLimit(limit)
      return summariesOf(attempt(path, () => runs.all(max)))
    },
    async remove(runId) {
      checkRunId(runId)
      attempt(path, () => remove.run(runId))
    },
    async close() {
      if (isOpen) database.close()
      isOpen = false
    },
  }
}

/** Opens the file for each call, so that each call sees all earlier writes. */
function readingStore(path: string): JournalStore {
  const query = async <T>(sql: string, ask: (statement: Sqlite.StatementSync) => T): Promise<Awaited<T>> => {
    const database = attempt(path, () => openForReading(path))
    try {
      return await ask(attempt(path, () => database.prepare(sql)))
    } finally {
      database.close()
    }
  }
  const refuse = (): never => {
    throw toJournalError(path, new Error('it was opened for reading only; open it without readOnly to change it'))
  }
  return {
    append(event) {
      checkRunId(event.run_id)
      refuse()
    },
    read: async (runId) => query(SELECT, (select) => readRows(path, select, checkRunId(runId))),
    list: async ({ limit } = {}) => {
      const max = checkLimit(limit)
      return query(RUNS, (runs) => summariesOf(attempt(path, () => runs.all(max))))
    },
    async remove(runId) {
      checkRunId(runId)
      refuse()
    },
    close: async () => {},
  }
}

type Row = ReturnType<Sqlite.StatementSync['all']>[number]

function readRows(path: string, select: Sqlite.StatementSync, runId: string): ReturnType<JournalStore['read']> {
  return parseEvents(bodiesOf(path, select, runId))
}

function* bodiesOf(path: string, select: Sqlite.StatementSync, runId: string): Generator<string, void, void> {
  let seq = -1
  for (;;) {
    const row = attempt(path, () => select.get(runId, seq))
    if (row === undefined || typeof row['seq'] !== 'number') return
    seq = row['seq']
    yield String(row['body'])
  }
}

function summariesOf(rows: readonly Row[]): Awaited<ReturnType<JournalStore['list']>> {
  return rows.map(({ run_id: runId, at }) => ({
    runId: String(runId),
    startedAt: startOfRunId(String(runId)) ?? String(at),
  }))
}

function openForWriting(path: string): Sqlite.DatabaseSync {
  if (path !== ':memory:') {
    makeDirectory(dirname(path))
    // SQLite creates its other files with the mode of this one.
    closeSync(openSync(path, 'a', 0o600))
  }
  const database = new (sqlite().DatabaseSync)(path)
  try {
    database.exec('PRAGMA busy_timeout = 5000')
    if (tablesOf(database) > 0 && !isOurs(database)) throw new Error(NOT_OURS)
    database.exec(SCHEMA)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/**
 * A database without a write-ahead log is opened as immutable: this works in a read-only directory, and creates no file next
 * to the database.
 */
function openForReading(path: string): Sqlite.DatabaseSync {
  const url = pathToFileURL(resolve(path))
  if (!statSync(path).isFile()) throw new Error('it is not a regular file')
  if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0) url.searchParams.set('immutable', '1')
  const database = new (sqlite().DatabaseSync)(url, { readOnly: true })
  try {
    database.exec('PRAGMA busy_timeout = 5000')
    if (!isOurs(database)) throw new Error(NOT_OURS)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

function tablesOf(database: Sqlite.DatabaseSync): number {
  return Number(database.prepare('SELECT count(*) AS count FROM sqlite_master').get()?.['count'])
}

function isOurs(database: Sqlite.DatabaseSync): boolean {
  const defined = database
    .prepare(DEFINED)
    .all()
    .map(({ sql }) => sql)
  return defined.includes(DEFINITIONS[0] ?? '') && defined.every((sql) => DEFINITIONS.includes(String(sql)))
}

/** Loaded on demand: Node 22 prints a warning when it loads this module. */
function sqlite(): typeof Sqlite {
  return createRequire(import.meta.url)('node:sqlite') as typeof Sqlite
}

function attempt<T>(path: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    throw toJournalError(path, error)
  }
}
