import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import type { JournalEvent } from './events.ts'
import { parseEvent } from './parse-event.ts'
import { checkRunId, startOfRunId } from './run-id.ts'
import { checkLimit, type JournalStore } from './store.ts'

const SUFFIX = '.jsonl'
/** Files of runs under way that are kept open. */
const MAX_OPEN = 64

/**
 * Keeps each run in a file of its own below a directory, one JSON event a line, written at once: what a killed process
 * had told is there. The directory is made, for its owner alone.
 * @throws SandglassError `journal_unusable` when it cannot be made.
 */
export function jsonlStore(directory: string): JournalStore {
  attempt(directory, () => {
    // What lies above it is not ours to shut: sandboxes of other uids may have to pass there.
    mkdirSync(dirname(directory), { recursive: true })
    mkdirSync(directory, { recursive: true, mode: 0o700 })
  })
  const open = new Map<string, number>()
  const fileOf = (runId: string): string => join(directory, `${checkRunId(runId)}${SUFFIX}`)
  const leave = (runId: string): void => {
    const fd = open.get(runId)
    open.delete(runId)
    if (fd !== undefined) closeSync(fd)
  }
  const descriptorOf = (runId: string): number => {
    const known = open.get(runId)
    if (known !== undefined) return known
    const fd = openSync(fileOf(runId), 'a', 0o600)
    open.set(runId, fd)
    const [oldest] = open.keys()
    if (open.size > MAX_OPEN && oldest !== undefined) leave(oldest)
    return fd
  }
  return {
    append(event) {
      attempt(directory, () => {
        writeAll(descriptorOf(event.run_id), Buffer.from(`${JSON.stringify(event)}\n`))
        if (event.type === 'run_ended') leave(event.run_id)
      })
    },
    async read(runId) {
      const file = fileOf(runId)
      try {
        return eventsIn(readFileSync(file, 'utf8'))
      } catch (error) {
        if (errnoOf(error) === 'ENOENT') return []
        throw unusable(directory, error)
      }
    },
    async list({ limit } = {}) {
      const most = checkLimit(limit)
      const names = attempt(directory, () => readdirSync(directory)).filter((name) => name.endsWith(SUFFIX))
      return names
        .map((name) => name.slice(0, -SUFFIX.length))
        .filter((runId) => startOfRunId(runId) !== undefined)
        .toSorted()
        .toReversed()
        .slice(0, most)
        .map((runId) => ({ runId, startedAt: startOfRunId(runId) ?? '' }))
    },
    async remove(runId) {
      const file = fileOf(runId)
      leave(runId)
      attempt(directory, () => rmSync(file, { force: true }))
    },
    async close() {
      for (const runId of open.keys()) leave(runId)
    },
  }
}

function writeAll(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at)
}

function eventsIn(text: string): JournalEvent[] {
  return text
    .split('\n')
    .map((line) => (line === '' ? undefined : parseEvent(line)))
    .filter((event) => event !== undefined)
}

function attempt<T>(directory: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    throw error instanceof TypeError ? error : unusable(directory, error)
  }
}

function unusable(directory: string, error: unknown): SandglassError {
  return new SandglassError('journal_unusable', `the journal in ${directory} cannot be used: ${messageOf(error)}`, {
    cause: error,
  })
}
