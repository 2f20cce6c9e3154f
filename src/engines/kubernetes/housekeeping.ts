import type { V1Pod } from '@kubernetes/client-node'
import type { SandglassError } from '../../errors/index.ts'
import { Semaphore } from '../../support/index.ts'
import type { Cluster } from './cluster.ts'
import { HostLease } from './lease.ts'
import type { OwnerMarks } from './owner.ts'
import { deletePod, type ManagedPod, removePod } from './pod.ts'
import { whyLost } from './pod-end.ts'
import { SILENCE_SEC } from './pod-spec.ts'
import { removeOrphans } from './pods.ts'

/** Dead hosts are looked for at the start and then after so many renewals of the own lease. */
const RENEWALS = 2
/** Pods that are removed at the same time. */
const CONCURRENCY = 4
/** The time in which a node ends the containers of deleted pods. An API server that does not answer takes no more of it. */
const CLOSE_MS = 15_000
/** A sandbox whose connection is cut ends by itself within this time, because the container beside it hears no heartbeat. */
const SILENT_MS = SILENCE_SEC * 1000

/** Removes a pod; resolves to true when it is gone. */
type Removal = (cluster: Cluster, name: string, signal: AbortSignal) => Promise<boolean>

/** Keeps the lease of one engine, gives up the sandboxes that its node lost, and removes what it could not remove before and what dead hosts left. */
export class Housekeeping {
  readonly #cluster: Cluster
  readonly #lease: HostLease
  readonly #abandoned = new Set<string>()
  readonly #living = new Set<ManagedPod>()
  #renewals = 0
  #isTidying = false
  #retrying: Promise<void> = Promise.resolve()
  #isClosed = false
  readonly #givenUp = new AbortController()

  constructor(cluster: Cluster, marks: OwnerMarks) {
    this.#cluster = cluster
    this.#lease = new HostLease(cluster, marks, () => {
      this.#renewals += 1
      if (this.#renewals % RENEWALS === 0) void this.#tidy()
    })
  }

  /** Begins to look for dead hosts. */
  begin(): void {
    void this.#tidy()
  }

  /** Why other hosts cannot see that this one lives; undefined if they can. */
  get problem(): SandglassError | undefined {
    return this.#lease.problem
  }

  /** Takes note of a pod whose removal was not confirmed. */
  abandon(name: string): void {
    this.#abandoned.add(name)
  }

  /** Keeps the lease until this pod is gone, also after `close`. */
  watch(pod: ManagedPod): void {
    this.#living.add(pod)
    void pod.removed.then(() => {
      this.#living.delete(pod)
      if (this.#isClosed && this.#living.size === 0) void this.#lease.end()
    })
  }

  /** Tries once more to remove what is left, for 15 s at most. The lease ends with the last pod. */
  async close(): Promise<void> {
    this.#isClosed = true
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      this.#givenUp.abort()
      resolve()
    }, CLOSE_MS)
    await Promise.race([this.#finish(), over])
    clearTimeout(timer)
  }

  async #finish(): Promise<void> {
    await this.#retry(removePod)
    if (this.#living.size === 0) await this.#lease.end()
  }

  async #tidy(): Promise<void> {
    if (this.#isTidying || this.#isClosed) return
    this.#isTidying = true
    // Orphans block nothing: an account that may not list pods can still run scripts.
    const living = [...this.#living]
    const removing = removeOrphans(this.#cluster, (pods) => this.#fence(living, pods)).catch(() => undefined)
    await Promise.all([this.#retry(deletePod), removing])
    this.#isTidying = false
  }

  /** Gives up sandboxes that are silent and that Kubernetes calls lost. An API server goes on to answer for a node that stands still. */
  #fence(living: readonly ManagedPod[], pods: readonly V1Pod[]): void {
    const nowMs = this.#cluster.clock.now()
    for (const one of living) {
      const why = whyLost(
        pods.find(({ metadata }) => metadata?.name === one.name),
        nowMs,
      )
      if (why !== undefined && one.silentMs > SILENT_MS) one.lose(why)
    }
  }

  #retry(remove: Removal): Promise<void> {
    return (this.#retrying = this.#retrying.then(() => this.#retryOnce(remove)))
  }

  async #retryOnce(removeOne: Removal): Promise<void> {
    const names = [...this.#abandoned]
    this.#abandoned.clear()
    const semaphore = new Semaphore(CONCURRENCY)
    const { signal } = this.#givenUp
    const remove = async (name: string): Promise<void> => {
      if (signal.aborted || !(await removeOne(this.#cluster, name, signal))) this.#abandoned.add(name)
    }
    await Promise.all(names.map((name) => semaphore.run(() => remove(name))))
  }
}
