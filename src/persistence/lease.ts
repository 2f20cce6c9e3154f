import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { SandglassError } from '../errors/index.ts'
import { within } from '../executor/index.ts'
import { formatValue } from '../support/index.ts'
import type { Store } from '../stores/index.ts'
import { isGone, thisProcess } from './owner-process.ts'
import { readRecord, type WorkspaceOwnerState, type WorkspaceRecord, writeRecord } from './record.ts'

/** Other processes treat an owner that has not renewed its lease for this time as dead. */
export const LEASE_MS = 30_000
/** Time for a store to abort its current work, and to record the end of the lease. */
export const RELEASE_MS = 5000

/** Options of {@link WorkspaceLease.acquire}. */
export interface LeaseOptions {
  /** Time to wait until the current owner releases it, in milliseconds. Default 0. */
  readonly waitMs?: number
  /** Default {@link LEASE_MS}; all users of a store must have the same value. */
  readonly leaseMs?: number
  readonly signal?: AbortSignal | undefined
}

const POLLS_PER_LEASE = 30
const RENEWALS_PER_LEASE = 3

/**
 * The right to change the state of a workspace in a store. Each change replaces exactly the record that this owner wrote last, so
 * an owner that was suspended for too long, and whose workspace has another owner by now, changes nothing.
 *
 * This process decides that another owner is dead by its own monotonic clock, if the record has not changed for the time of a
 * lease. The times in a record, by the clock of another machine, only decide whether to wait that long.
 */
export class WorkspaceLease {
  readonly id: string
  readonly store: Store
  readonly #token: string
  readonly #renewMs: number
  #record: WorkspaceRecord
  #tag: string
  /** The changes, one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #released: Promise<void> | undefined
  #ended: SandglassError | undefined
  #onLost: (error: SandglassError) => void = () => {}

  private constructor(store: Store, record: WorkspaceRecord, tag: string, token: string, leaseMs: number) {
    this.id = record.id
    this.store = store
    this.#record = record
    this.#tag = tag
    this.#token = token
    this.#renewMs = leaseMs / RENEWALS_PER_LEASE
    this.#renewLater()
  }

  /** @throws SandglassError `workspace_owned`, `aborted`, and those of the store. */
  static async acquire(store: Store, id: string, options: LeaseOptions = {}): Promise<WorkspaceLease> {
    const { waitMs = 0, leaseMs = LEASE_MS, signal } = options
    const began = performance.now()
    let seen: { readonly tag: string | undefined; readonly at: number } | undefined
    let isRenewed = false // since the wait began
    for (;;) {
      if (signal?.aborted === true) throw abortedWait(id, signal)
      const { record, tag } = await readRecord(store, id)
      const now = performance.now()
      if (seen === undefined || seen.tag !== tag) {
        isRenewed = seen !== undefined
        seen = { tag, at: now }
      }
      const { owner } = record
      if (owner === null || isGone(owner.process) || now - seen.at >= leaseMs) {
        const token = randomUUID()
        const next = { ...record, generation: record.generation + 1, owner: ownerState(token) }
        const written = await writeRecord(store, next, tag)
        if (written === undefined) continue
        try {
          await refuseUnconditional(store, next, tag)
        } catch (error) {
          // Nobody has this lease. If this fails, too, it expires.
          const releasing = writeRecord(store, { ...next, owner: null }, written).catch(() => undefined)
          await within(releasing, RELEASE_MS)
          throw error
        }
        return new WorkspaceLease(store, next, written, token, leaseMs)
      }
      if (now - began >= waitMs && (isRenewed || isFresh(owner, leaseMs))) throw ownedError(id, owner)
      await sleep(leaseMs / POLLS_PER_LEASE, undefined, { signal }).catch(() => undefined)
    }
  }

  /** The state of the workspace in the store. */
  get record(): WorkspaceRecord {
    return this.#record
  }

  /** The reason why the lease has ended; undefined while it is held. */
  get endedBy(): SandglassError | undefined {
    return this.#ended
  }

  /** Calls a function once if another owner took over. */
  set onLost(listener: (error: SandglassError) => void) {
    this.#onLost = listener
  }

  /** Changes the record, after all pending changes. @throws SandglassError `workspace_owned`, and those of the store. */
  update(change: (record: WorkspaceRecord) => WorkspaceRecord): Promise<void> {
    const changed = this.#last.then(() => this.#write(change))
    this.#last = changed.catch(() => undefined)
    return changed
  }

  /**
   * Releases the workspace, once. Never rejects, and waits for {@link RELEASE_MS} at most: a lease that cannot be released
   * expires.
   */
  release(): Promise<void> {
    if (this.#released === undefined) {
      clearTimeout(this.#timer)
      const releasing = this.#last.then(() => this.#recordRelease())
      this.#last = releasing
      this.#released = within(releasing, RELEASE_MS)
    }
    return this.#released
  }

  /** Ends the lease in the step that records the release; otherwise a queued change would take the workspace again. */
  async #recordRelease(): Promise<void> {
    await this.#write((record) => ({ ...record, owner: null })).catch(() => undefined)
    this.#ended ??= new SandglassError('workspace_closed', 'the workspace has released its files in the store')
  }

  async #write(change: (record: WorkspaceRecord) => WorkspaceRecord): Promise<void> {
    // Two attempts, because a write that failed may have taken effect.
    for (let attempt = 0; attempt < 2; attempt++) {
      if (this.#ended !== undefined) throw this.#ended
      const next = change({ ...this.#record, owner: ownerState(this.#token) })
      const tag = await writeRecord(this.store, next, this.#tag)
      if (tag !== undefined) {
        this.#record = next
        this.#tag = tag
        return
      }
      const present = await readRecord(this.store, this.id)
      if (present.record.owner?.token !== this.#token || present.tag === undefined) break
      this.#tag = present.tag
    }
    throw this.#lose()
  }

  #lose(): SandglassError {
    const error = new SandglassError(
      'workspace_owned',
      `workspace ${formatValue(this.id)}: another owner took over, because this one did not renew its lease in time; open it again`,
    )
    this.#ended = error
    clearTimeout(this.#timer)
    this.#onLost(error)
    return error
  }

  #renewLater(): void {
    this.#timer = setTimeout(() => void this.#renew(), this.#renewMs)
    this.#timer.unref()
  }

  /** Renews the lease, and tries again after a failure of the store. Only a successful write shows that nobody took over. */
  async #renew(): Promise<void> {
    await this.update((record) => record).catch(() => undefined)
    if (this.#ended === undefined && this.#released === undefined) this.#renewLater()
  }
}

/** Refuses a store that accepts a second write on the same state, because it cannot keep two owners apart. */
async function refuseUnconditional(store: Store, record: WorkspaceRecord, tag: string | undefined): Promise<void> {
  if ((await writeRecord(store, record, tag)) === undefined) return
  throw new SandglassError(
    'store_unusable',
    `${store.name} has no conditional writes, without which two owners could have one workspace; use another store`,
  )
}

function ownerState(token: string): WorkspaceOwnerState {
  return { token, renewedAt: new Date().toISOString(), process: thisProcess() }
}

/** True if its lease is in force by the clocks of both machines. */
function isFresh({ renewedAt }: WorkspaceOwnerState, leaseMs: number): boolean {
  const age = Date.now() - Date.parse(renewedAt)
  return age > -leaseMs && age < leaseMs
}

function ownedError(id: string, { renewedAt, process }: WorkspaceOwnerState): SandglassError {
  const pid = process === null ? '' : `, process ${process.pid}`
  return new SandglassError(
    'workspace_owned',
    `workspace ${formatValue(id)} has an owner (seen at ${renewedAt}${pid}): close it there, or wait with waitSec`,
  )
}

function abortedWait(id: string, signal: AbortSignal): SandglassError {
  return new SandglassError('aborted', `the wait for workspace ${formatValue(id)} was aborted`, {
    cause: signal.reason,
  })
}
