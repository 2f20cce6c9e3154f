import { randomBytes } from 'node:crypto'
import { closeSync, constants, openSync, readdirSync, rmSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf } from '../errors/index.ts'
import { makeDirectory } from '../support/index.ts'
import { parseEvents } from './parse-event.ts'
import { checkRunId, startOfRunId } from './run-id.ts'
import { checkLimit, type JournalStore, type StoreOptions, toJournalError } from './store.ts'

const SUFFIX = '.jsonl'
/** Error codes if there is no file, or a socket or a link to itself in its place. */
const NO_FILE = new Set(['ENOENT', 'ENXIO', 'ELOOP'])
const READ_ONLY = 'it was opened for reading only; open it without readOnly to change it'
/** Maximum number of open files, one for each active task. */
const MAX_OPEN = 64

/**
 * Keeps each task in its own file in a directory, one JSON event per line. Events are written immediately and survive a
 * kill of the process. Only its owner can access a new directory.
 * @throws SandglassError `journal_unusable` if the directory cannot be created or written to.
 */
export function jsonlStore(directory: string, { readOnly = false }: StoreOptions = {}): JournalStore {
  if (!readOnly) {
    attempt(directory, () => {
      makeDirectory(directory, { own: 0o700 })
      tryToWrite(directory)
    })
  }
  const opened = new Map<string, number>()
  const fileOf = (runId: string): string => join(directory, `${checkRunId(runId)}${SUFFIX}`)
  const leave = (runId: string): void => {
    const fd = opened.get(runId)
    opened.delete(runId)
    if (fd !== undefined) closeSync(fd)
  }
  const descriptorOf = (runId: string): number => {
    const known = opened.get(runId)
    if (known !== undefined) return known
    const fd = openSync(fileOf(runId), 'a', 0o600)
    opened.set(runId, fd)
    const [oldest] = opened.keys()
    if (opened.size > MAX_OPEN && oldest !== undefined) leave(oldest)
    return fd
  }
  return {
    append(event) {
      attempt(directory, () => {
        if (readOnly) throw new Error(READ_ONLY)
        writeAll(descriptorOf(event.run_id), Buffer.from(`${JSON.stringify(event)}\n`))
        if (event.type === 'run_ended') leave(event.run_id)
      })
    },
    async read(runId) {
      const file = fileOf(runId)
      try {
        return await parseEvents(linesOf(await readRegular(file)))
      } catch (error) {
        if (NO_FILE.has(errnoOf(error) ?? '')) return []
        throw toJournalError(directory, error)
      }
    },
    async list({ limit } = {}) {
      const max = checkLimit(limit)
      const names = attempt(directory, () => readdirSync(directory)).filter((name) => name.endsWith(SUFFIX))
      return names
        .map((name) => name.slice(0, -SUFFIX.length))
        .filter((runId) => startOfRunId(runId) !== undefined)
        .toSorted()
        .toReversed()
        .slice(0, max)
        .map((runId) => ({ runId, startedAt: startOfRunId(runId) ?? '' }))
    },
    async remove(runId) {
      const file = fileOf(runId)
      leave(runId)
      attempt(directory, () => {
        if (readOnly) throw new Error(READ_ONLY)
        rmSync(file, { force: true })
      })
    },
    async close() {
      for (const runId of opened.keys()) leave(runId)
    },
  }
}

/** Writes a probe file, because on procfs and for root the permissions do not tell whether a file can be created. */
function tryToWrite(directory: string): void {
  const probe = join(directory, `.probe-${randomBytes(8).toString('hex')}`)
  closeSync(openSync(probe, 'wx', 0o600))
  rmSync(probe, { force: true })
}

function writeAll(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at)
}

/** Reads a file. A pipe or a device counts as empty, because reading it may never end. */
async function readRegular(file: string): Promise<Buffer> {
  await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
  return (await handle.stat()).isFile() ? await handle.readFile() : Buffer.alloc(0)
}

function* linesOf(bytes: Buffer): Generator<string, void, void> {
  for (let start = 0; start < bytes.length;) {
    const found = bytes.indexOf(0x0a, start)
    const end = found === -1 ? bytes.length : found
    if (end > start) yield bytes.toString('utf8', start, end)
    start = end + 1
  }
}

function attempt<T>(directory: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    throw error instanceof TypeError ? error : toJournalError(directory, error)
  }
}
