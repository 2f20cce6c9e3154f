import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  SandglassError,
  type Sandglass,
  type Session,
  type SessionCheckpoint,
  type Workspace,
} from '../../src/index.ts'
import type { Outcome } from './host-calls.ts'

export const SESSIONS = 8
const CHECKPOINTS = 5
/** The name of their processes; copies are named for their origin. */
const MARK = 'chaos'
const PAUSE_MS = 10

/** Options of {@link countInSessions}. */
interface Counting {
  readonly seconds: number
  readonly signal: AbortSignal
  readonly onBegun: (workspace: Workspace) => void
}

/** Runs sessions with checkpoints in one workspace. Their cells count until the time is over; a wrong count must be reported. */
export async function countInSessions(sandglass: Sandglass, { seconds, signal, onBegun }: Counting): Promise<Outcome> {
  await using workspace = await sandglass.workspace({ signal })
  const opened = await Promise.all(Array.from({ length: SESSIONS }, () => open(workspace)))
  onBegun(workspace)
  const until = performance.now() + seconds * 1000
  const ends = await Promise.all(opened.map((one) => countUntil(until, one)))
  return { said: `completed: ${ends.filter((end) => end === 'good').length} good`, sandbox: workspace.id }
}

/** The processes of the sessions of a sandbox: heads and copies. */
export function sessionProcesses(processes: readonly number[]): number[] {
  return processes.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/comm`, 'utf8').trim().endsWith(MARK)
    } catch {
      return false // it has ended
    }
  })
}

interface Opened {
  readonly session: Session
  readonly checkpoints: readonly SessionCheckpoint[]
}

async function open(workspace: Workspace): Promise<Opened> {
  const session = await workspace.session()
  await session.run(`n = 0\nimport ctypes; ctypes.CDLL(None).prctl(15, b"${MARK}", 0, 0, 0)`)
  const checkpoints: SessionCheckpoint[] = []
  while (checkpoints.length < CHECKPOINTS) checkpoints.push(await session.checkpoint())
  return { session, checkpoints }
}

/** @throws Error for a wrong state that was not reported. */
async function countUntil(until: number, { session, checkpoints }: Opened): Promise<'good' | 'lost'> {
  let n: number | undefined = 0
  while (performance.now() < until) {
    const cell = await unlessLost(session.run('n += 1\nn'))
    if (cell === undefined || cell.state === 'lost') return 'lost'
    if (cell.state === 'rolled-back') {
      if (cell.missing.some((text) => text.includes('earlier cells'))) n = undefined
    } else {
      const value = Number(cell.value)
      if (n !== undefined && cell.warnings.length === 0 && value !== n + 1) throw new Error(`${value} after ${n}`)
      n = value
    }
    await sleep(PAUSE_MS)
  }
  for (const checkpoint of checkpoints) {
    const isThere = await unlessLost(canRestore(session, checkpoint))
    if (isThere === false) continue
    const after = isThere === undefined ? undefined : await unlessLost(session.run('n'))
    if (after === undefined || after.state === 'lost') return 'lost'
    if (after.state === 'kept' && after.value !== 0) throw new Error(`${String(after.value)} after a restore of 0`)
  }
  return 'good'
}

/** Resolves with undefined when the session is lost. */
async function unlessLost<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (error instanceof SandglassError && error.code === 'session_lost') return undefined
    throw error
  }
}

/** False for a checkpoint whose process has ended. */
async function canRestore(session: Session, checkpoint: SessionCheckpoint): Promise<boolean> {
  try {
    await session.restore(checkpoint)
    return true
  } catch (error) {
    if (error instanceof SandglassError && error.code === 'checkpoint_unavailable') return false
    throw error
  }
}
