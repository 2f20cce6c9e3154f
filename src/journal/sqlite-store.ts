import { closeSync, mkdirSync, openSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import type * as Sqlite from 'node:sqlite'
import { messageOf, SandglassError } from '../errors/index.ts'
import { parseEvent } from './parse-event.ts'
import { checkRunId, startOfRunId } from './run-id.ts'
import { checkLimit, type JournalStore } from './store.ts'

const SCHEMA = `
  PRAGMA busy_timeout = 5000;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS events (
    run_id TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, at TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS runs ON events (at, run_id) WHERE seq = 0;`

/**
 * Keeps runs in a SQLite database (Node's own `node:sqlite`), several processes at a time. A process that is killed loses
 * nothing that it told; a machine that loses its power may lose the last events.
 * @param path a file, which is made for its owner alone, or `:memory:`.
 * @throws SandglassError `journal_unusable` when it cannot be opened.
 */
export function sqliteStore(path: string): JournalStore {
  const database = opened(path)
  const insert = database.prepare('INSERT INTO events (run_id, seq, type, at, body) VALUES (?, ?, ?, ?, ?)')
  const select = database.prepare('SELECT body FROM events WHERE run_id = ? ORDER BY seq')
  const runs = database.prepare('SELECT run_id, at FROM events WHERE seq = 0 ORDER BY at DESC, run_id DESC LIMIT ?')
  const remove = database.prepare('DELETE FROM events WHERE run_id = ?')
  let isOpen = true
  const attempt = <T>(act: () => T): T => {
    try {
      return act()
    } catch (error) {
      throw unusable(path, error)
    }
  }
  return {
    append(event) {
      checkRunId(event.run_id)
      attempt(() => insert.run(event.run_id, event.seq, event.type, event.at, JSON.stringify(event)))
    },
    async read(runId) {
      checkRunId(runId)
      const rows = attempt(() => select.all(runId))
      return rows.map(({ body }) => parseEvent(String(body))).filter((event) => event !== undefined)
    },
    async list({ limit } = {}) {
      const most = checkLimit(limit)
      return attempt(() => runs.all(most)).map(({ run_id: runId, at }) => ({
        runId: String(runId),
        startedAt: startOfRunId(String(runId)) ?? String(at),
      }))
    },
    async remove(runId) {
      checkRunId(runId)
      attempt(() => remove.run(runId))
    },
    async close() {
      if (isOpen) database.close()
      isOpen = false
    },
  }
}

function opened(path: string): Sqlite.DatabaseSync {
  try {
    if (path !== ':memory:') {
      mkdirSync(dirname(path), { recursive: true })
      // SQLite gives the files beside it the mode of this one.
      closeSync(openSync(path, 'a', 0o600))
    }
    // Asked for here: loading it prints a warning in Node 22, which nobody needs who does not use it.
    const sqlite = createRequire(import.meta.url)('node:sqlite') as typeof Sqlite
    const database = new sqlite.DatabaseSync(path)
    database.exec(SCHEMA)
    return database
  } catch (error) {
    throw unusable(path, error)
  }
}

function unusable(path: string, error: unknown): SandglassError {
  return new SandglassError('journal_unusable', `the journal ${path} cannot be used: ${messageOf(error)}`, {
    cause: error,
  })
}
