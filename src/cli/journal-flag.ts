import { existsSync, readdirSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { type JournalStore, jsonlStore, sqliteStore } from '../journal/index.ts'
import type { Given } from './args.ts'
import { UsageError } from './failure.ts'

const DATABASE = /\.(?:db|sqlite|sqlite3)$/i

/** Where journals of `solve` are kept. */
export interface JournalPlace {
  readonly path: string
  readonly isDatabase: boolean
  /** What has to stand behind `sandglass show ID` for this place: nothing for the default. */
  readonly flag: string
}

/**
 * The place that `--journal` names: a directory with a file for each run, or an SQLite database.
 * @throws UsageError for a file that is no database by its name.
 */
export function journalPlace(given: Given, env: NodeJS.ProcessEnv): JournalPlace {
  const path = given.last('--journal')
  if (path === undefined) return { path: defaultDirectory(env), isDatabase: false, flag: '' }
  if (path === '') throw new UsageError('invalid_request', '--journal: it names no path')
  const isDatabase = DATABASE.test(path)
  const isDirectory = statSync(path, { throwIfNoEntry: false })?.isDirectory()
  if (isDatabase === isDirectory) {
    const is = isDirectory ? 'it is a directory; a database is a file' : 'it is a file'
    throw new UsageError(
      'invalid_request',
      `--journal ${path}: ${is}; a journal is a directory, or a SQLite file named *.db or *.sqlite`,
    )
  }
  const word = /^[\w./:@%+=-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
  return { path, isDatabase, flag: ` --journal ${word}` }
}

/** Opens it for writing; what is missing is made. @throws SandglassError `journal_unusable`. */
export function openJournal({ path, isDatabase }: JournalPlace): JournalStore {
  return isDatabase ? sqliteStore(path) : jsonlStore(path)
}

/**
 * Opens it for reading, without making anything: undefined for the default place before the first run.
 * @throws UsageError for another place that is not there; SandglassError `journal_unusable`.
 */
export function existingJournal(place: JournalPlace): JournalStore | undefined {
  if (existsSync(place.path)) return openJournal(place)
  if (place.flag === '') return undefined
  throw new UsageError('invalid_request', `--journal ${place.path}: there is no such directory or database`)
}

/** Files in a directory of journals whose names are those of no run. */
export function foreignFiles({ path, isDatabase }: JournalPlace, runs: ReadonlySet<string>): readonly string[] {
  if (isDatabase) return []
  return readdirSync(path).filter((name) => !(name.endsWith('.jsonl') && runs.has(name.slice(0, -'.jsonl'.length))))
}

/** A relative XDG_STATE_HOME counts as none, as its specification asks. */
function defaultDirectory(env: NodeJS.ProcessEnv): string {
  const { XDG_STATE_HOME: state = '', HOME: home = '' } = env
  const base = isAbsolute(state) ? state : join(isAbsolute(home) ? home : homedir(), '.local/state')
  return join(base, 'sandglass/runs')
}
