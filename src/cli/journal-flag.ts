import { readdirSync, type Stats, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import { type JournalStore, jsonlStore, sqliteStore } from '../journal/index.ts'
import { formatPath } from '../support/index.ts'
import type { Given } from './args.ts'
import { UsageError } from './failure.ts'
import { shellWord } from './shell-word.ts'

const DATABASE = /\.(?:db|sqlite|sqlite3)$/i

/** The place where `solve` stores its journals. */
export interface JournalPlace {
  readonly path: string
  readonly isDatabase: boolean
  /** The flag that `sandglass show ID` needs for this place; empty for the default. */
  readonly flag: string
}

/**
 * The place that `--journal` names: a directory with a file for each task, or an SQLite database.
 * @throws UsageError for a file whose name is not that of a database, and for a path that cannot be read.
 */
export function journalPlace(given: Given, env: NodeJS.ProcessEnv): JournalPlace {
  const path = given.last('--journal')
  if (path === undefined) return { path: join(stateDirectory(env), 'runs'), isDatabase: false, flag: '' }
  if (path === '') throw new UsageError('invalid_request', '--journal: the path is empty')
  const isDatabase = DATABASE.test(path)
  const isDirectory = statOf(path, '--journal')?.isDirectory()
  if (isDatabase === isDirectory) {
    const is = isDirectory ? 'it is a directory; a database is a file' : 'it is a file'
    throw new UsageError(
      'invalid_request',
      `--journal ${formatPath(path)}: ${is}; a journal is a directory, or a SQLite file named *.db or *.sqlite`,
    )
  }
  const whole = resolve(path)
  return { path, isDatabase, flag: ` --journal ${shellWord(whole)}` }
}

/** Opens a journal for writing and creates it if it is missing. @throws SandglassError `journal_unusable`. */
export function openJournal({ path, isDatabase }: JournalPlace): JournalStore {
  return isDatabase ? sqliteStore(path) : jsonlStore(path)
}

/**
 * Opens a journal for reading. Undefined for the default place before the first task.
 * @throws UsageError for another place that does not exist; SandglassError `journal_unusable`.
 */
export function existingJournal(place: JournalPlace): JournalStore | undefined {
  const { path, isDatabase, flag } = place
  if (statOf(path, flag === '' ? 'the journal' : '--journal') !== undefined) {
    return isDatabase ? sqliteStore(path, { readOnly: true }) : jsonlStore(path, { readOnly: true })
  }
  if (flag === '') return undefined
  throw new UsageError('invalid_request', `--journal ${formatPath(path)}: there is no such directory or database`)
}

/** The files in a journal directory that are not journals of tasks. */
export function foreignFiles({ path, isDatabase }: JournalPlace, runs: ReadonlySet<string>): readonly string[] {
  if (isDatabase) return []
  const isRun = (name: string): boolean => name.endsWith('.jsonl') && runs.has(name.slice(0, -'.jsonl'.length))
  try {
    return readdirSync(path).filter((name) => !isRun(name))
  } catch (error) {
    const message = `the journal ${formatPath(path)} cannot be used: ${errnoOf(error) ?? messageOf(error)}`
    throw new SandglassError('journal_unusable', message, { cause: error })
  }
}

function statOf(path: string, name: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    const reason = errnoOf(error) ?? messageOf(error)
    const message = `${name} ${formatPath(path)}: it cannot be inspected: ${reason}`
    throw new UsageError('invalid_request', message, { cause: error })
  }
}

/** The directory of the command line's tasks. A relative XDG_STATE_HOME is ignored, as its specification demands. */
export function stateDirectory(env: NodeJS.ProcessEnv): string {
  const { XDG_STATE_HOME: state = '', HOME: home = '' } = env
  const base = isAbsolute(state) ? state : join(isAbsolute(home) ? home : homedir(), '.local/state')
  return join(base, 'sandglass')
}
