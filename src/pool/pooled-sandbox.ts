import type { Sandbox } from '../sandbox/index.ts'
import { definedOf } from '../support/index.ts'

/** The part that all states except the last one share. */
interface Living {
  end(gone: Promise<void>): void
}

/** Ready for the next lease. */
export interface Idle extends Living {
  readonly kind: 'idle'
  /** When its idle time began, by `performance.now()`; null while it is offered to waiters. */
  readonly since: number | null
  /** Starts its idle time, because no waiter took it. */
  rest(): void
  check(): void
  lease(key: string): void
}

/** Taken out for one waiter while its health is checked. */
export interface Checking extends Living {
  readonly kind: 'checking'
  lease(key: string): void
  /** Makes it free for the next waiter; `rest` follows if nobody takes it. */
  free(): void
}

export interface Leased extends Living {
  readonly kind: 'leased'
  recover(): void
  free(): void
}

/** Returned, and not ready for another run yet. */
export interface Recovering extends Living {
  readonly kind: 'recovering'
  free(): void
}

/** No longer in the pool. */
export interface Ending {
  readonly kind: 'ending'
  /** Resolves when it is gone, and never rejects. */
  readonly gone: Promise<void>
}

/**
 * The state of a sandbox of the pool. Each state has a method for each transition that it allows; the
 * last one has none. Read the state again after each transition.
 */
export type PooledState = Idle | Checking | Leased | Recovering | Ending

/** The assumed memory of a sandbox whose harness does not report it. */
const ASSUMED_BYTES = 16 * 1024 * 1024

/** A sandbox of the pool and what the pool knows about it. */
export class PooledSandbox {
  readonly sandbox: Sandbox
  #state: PooledState = this.#idle(null)
  #key: string | null = null
  #uses = 0
  #dead = false
  /** Ends the parking of its lease; null while that is not parked. */
  unpark: (() => void) | null = null
  /** The generation of the stock in which its creation began. */
  readonly generation: number

  constructor(sandbox: Sandbox, generation: number) {
    this.generation = generation
    this.sandbox = withDestroyHook(sandbox, () => this.markDead())
  }

  /** The memory that it takes while it is idle, in bytes. */
  get idleBytes(): number {
    const bytes = this.sandbox.idleBytes?.() ?? this.sandbox.ready.checks['memory_bytes']
    return typeof bytes === 'number' && bytes >= 0 ? bytes : ASSUMED_BYTES
  }

  get state(): PooledState {
    return this.#state
  }

  /** The key of its first lease; null while it is fresh, then it fits every key. */
  get key(): string | null {
    return this.#key
  }

  /** The number of its leases. */
  get uses(): number {
    return this.#uses
  }

  /** True if it ended by itself, or its borrower ended it. */
  get dead(): boolean {
    return this.#dead
  }

  /** True if it is not leased, and its health is not being checked. */
  get isFree(): boolean {
    return this.#state.kind === 'idle' || this.#state.kind === 'recovering'
  }

  markDead(): void {
    this.#dead = true
  }

  #idle(since: number | null): Idle {
    return {
      kind: 'idle',
      since,
      rest: () => this.#become(this.#idle(performance.now())),
      check: () => this.#become(this.#checking()),
      lease: (key) => this.#lease(key),
      end: (gone) => this.#end(gone),
    }
  }

  #checking(): Checking {
    return {
      kind: 'checking',
      lease: (key) => this.#lease(key),
      free: () => this.#free(),
      end: (gone) => this.#end(gone),
    }
  }

  #lease(key: string): void {
    this.#key = key
    this.#uses += 1
    this.#become({
      kind: 'leased',
      recover: () => this.#recover(),
      free: () => this.#free(),
      end: (gone) => this.#end(gone),
    })
  }

  #recover(): void {
    this.#become({ kind: 'recovering', free: () => this.#free(), end: (gone) => this.#end(gone) })
  }

  #free(): void {
    this.#become(this.#idle(null))
  }

  #end(gone: Promise<void>): void {
    this.#become({ kind: 'ending', gone })
  }

  #become(state: PooledState): void {
    this.#state = state
  }
}

/** The members that not every sandbox has. `inputsDir` is only that of sandboxes with activities, which no pool lends. */
const OPTIONAL = ['recovered', 'idleBytes', 'liftCpuLimit', 'lowerCpuLimit'] as const

/** The other members. If the contract gets a new one, this file does not compile until it is passed on, here or as an optional one. */
type Always = Required<Omit<Sandbox, (typeof OPTIONAL)[number] | 'inputsDir'>>

/**
 * Wraps a sandbox with a hook that is called when its destruction begins. A container may take seconds to end: in that time it
 * cannot run anything, but `closed` is not settled yet.
 */
function withDestroyHook(sandbox: Sandbox, onDestroy: () => void): Sandbox {
  const destroy = (): Promise<void> => {
    onDestroy()
    return sandbox.destroy()
  }
  const { id, info, channel, ready, closed } = sandbox
  const always: Always = {
    id,
    info,
    channel,
    ready,
    closed,
    memoryKills: () => sandbox.memoryKills(),
    destroy,
    [Symbol.asyncDispose]: destroy,
  }
  const optional = {
    recovered: sandbox.recovered?.bind(sandbox),
    idleBytes: sandbox.idleBytes?.bind(sandbox),
    liftCpuLimit: sandbox.liftCpuLimit?.bind(sandbox),
    lowerCpuLimit: sandbox.lowerCpuLimit?.bind(sandbox),
  }
  return { ...always, ...definedOf(optional, OPTIONAL) }
}

/** The request of a checkout: its lease key, and the sandbox that it prefers. */
export interface LeaseRequest {
  readonly key: string
  readonly wanted: PooledSandbox | null
}

/**
 * Chooses the idle sandbox that fits a request best: the wanted one, then the one of the same key that was returned last, then a
 * fresh one. Expects the sandboxes in the order in which they were returned.
 */
export function chooseIdle(sandboxes: Iterable<PooledSandbox>, request: LeaseRequest): PooledSandbox | null {
  let sameKey: PooledSandbox | null = null
  let fresh: PooledSandbox | null = null
  for (const pooled of sandboxes) {
    if (pooled.state.kind !== 'idle') continue
    if (pooled.key === null) fresh ??= pooled
    else if (pooled.key === request.key) sameKey = pooled
    else continue
    if (pooled === request.wanted) return pooled
  }
  return sameKey ?? fresh
}

/** Chooses a recovering sandbox that fits a request and that no waiter counts on. */
export function chooseRecovering(
  sandboxes: Iterable<PooledSandbox>,
  { key }: LeaseRequest,
  countedOn: ReadonlySet<PooledSandbox>,
): PooledSandbox | null {
  for (const pooled of sandboxes) {
    if (pooled.state.kind === 'recovering' && pooled.key === key && !countedOn.has(pooled)) return pooled
  }
  return null
}

/** Chooses the free sandbox to end in favour of another key: the one that was returned first. */
export function chooseVictim(
  sandboxes: Iterable<PooledSandbox>,
  key: string,
  countedOn: ReadonlySet<PooledSandbox>,
): PooledSandbox | null {
  for (const pooled of sandboxes) {
    if (pooled.isFree && pooled.key !== key && !countedOn.has(pooled)) return pooled
  }
  return null
}

/** True if the wanted sandbox is leased, checked or recovering under the same key, so that it is worth waiting for. */
export function isWorthWaitingFor({ wanted, key }: LeaseRequest): boolean {
  if (wanted === null || wanted.dead || wanted.key !== key) return false
  const { kind } = wanted.state
  return kind === 'leased' || kind === 'checking' || kind === 'recovering'
}
