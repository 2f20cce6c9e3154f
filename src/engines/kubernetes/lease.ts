import { hostname } from 'node:os'
import type { V1Lease, V1MicroTime } from '@kubernetes/client-node'
import { SandglassError } from '../../errors/index.ts'
import type { OwnerState } from '../../support/index.ts'
import type { Cluster } from './cluster.ts'
import { isMissing } from './explain.ts'
import { type OwnerMarks, ownerStateOf, SELECTOR } from './owner.ts'

/** A living host renews its lease this often: one request each time. */
const RENEW_MS = 10_000
/** A host whose lease was not renewed for this long counts as dead. */
const DURATION_SEC = 30

/** The lease of one engine of a host: while it is renewed, the pods that name it are in use. */
export class HostLease {
  readonly #cluster: Cluster
  readonly #marks: OwnerMarks
  readonly #onRenewal: () => void
  readonly #timer: NodeJS.Timeout
  #renewing: Promise<void> | undefined
  #problem: SandglassError | undefined

  /** @param onRenewal called after each renewal, whether it succeeded or not. */
  constructor(cluster: Cluster, marks: OwnerMarks, onRenewal: () => void) {
    this.#cluster = cluster
    this.#marks = marks
    this.#onRenewal = onRenewal
    this.#begin(this.#write())
    this.#timer = setInterval(() => {
      // A server that is slower than this gets no queue of renewals, for which `end` would wait.
      if (this.#renewing === undefined) this.#begin(this.#renew())
    }, RENEW_MS)
    this.#timer.unref()
  }

  /** Why there is no lease; undefined if there is one. */
  get problem(): SandglassError | undefined {
    return this.#problem
  }

  /** Deletes it. Never rejects: one that stays expires. */
  async end(): Promise<void> {
    clearInterval(this.#timer)
    await this.#renewing
    await removeLease(this.#cluster, this.#marks.lease)
  }

  #begin(renewing: Promise<void>): void {
    this.#renewing = renewing.finally(() => (this.#renewing = undefined))
  }

  async #renew(): Promise<void> {
    await this.#write()
    this.#onRenewal()
  }

  /** Starts with a patch: even a refusal carries the time of the server, by which the lease is then made. */
  async #write(): Promise<void> {
    const { namespace, clock } = this.#cluster
    const renewTime = new Date(clock.now()).toISOString().replace('Z', '000Z')
    try {
      await this.#cluster.call('renew a lease', (_, { coordination }) =>
        coordination.patchNamespacedLease({
          name: this.#marks.lease,
          namespace,
          body: [{ op: 'replace', path: '/spec/renewTime', value: renewTime }],
        }),
      )
      this.#problem = undefined
    } catch (error) {
      if (isMissing(error)) await this.#create()
      else this.#note(error)
    }
  }

  async #create(): Promise<void> {
    const { namespace, clock } = this.#cluster
    const { lease: name, labels, annotations, ownerReferences } = this.#marks
    try {
      await this.#cluster.call('create a lease', (_, { coordination, microTime }) => {
        const now: V1MicroTime = microTime(clock.now())
        const body: V1Lease = {
          metadata: {
            name,
            labels: { ...labels },
            annotations: { ...annotations },
            ownerReferences: [...ownerReferences],
          },
          spec: {
            holderIdentity: `${hostname()}/${process.pid}`,
            leaseDurationSeconds: DURATION_SEC,
            acquireTime: now,
            renewTime: now,
          },
        }
        return coordination.createNamespacedLease({ namespace, body })
      })
      this.#problem = undefined
    } catch (error) {
      this.#note(error)
    }
  }

  #note(error: unknown): void {
    if (!(error instanceof SandglassError)) throw error
    this.#problem = error
  }
}

/** A lease of a host, of any machine. */
export interface LeaseResource {
  readonly name: string
  readonly owner: OwnerState
  /** The milliseconds since it ended, by the clock of the server; negative before. */
  readonly endedMs: number
}

/** Lists the leases in the namespace; none where the account may not. @throws SandglassError when the request fails otherwise. */
export async function listLeases(cluster: Cluster): Promise<readonly LeaseResource[]> {
  const { namespace, clock } = cluster
  const labelSelector = SELECTOR
  try {
    const { items } = await cluster.call('list leases', (_, { coordination }) =>
      coordination.listNamespacedLease({ namespace, labelSelector }),
    )
    return items.map((one) => leaseResourceOf(one, clock.now()))
  } catch (error) {
    if (error instanceof SandglassError && error.code === 'kubernetes_permission') return []
    throw error
  }
}

/** Deletes a lease. Resolves to true when it is gone. Never rejects. */
export async function removeLease(cluster: Cluster, name: string): Promise<boolean> {
  const { namespace } = cluster
  try {
    await cluster.call('delete a lease', (_, { coordination }) =>
      coordination.deleteNamespacedLease({ name, namespace }),
    )
    return true
  } catch (error) {
    return isMissing(error)
  }
}

/** A lease with the state of its holder: what this machine sees of its process, else by the time of the last renewal. */
export function leaseResourceOf({ metadata, spec }: V1Lease, nowMs: number): LeaseResource {
  const name = metadata?.name ?? ''
  const seen = ownerStateOf(metadata?.annotations)
  if (spec?.renewTime === undefined) return { name, owner: seen, endedMs: Number.NEGATIVE_INFINITY }
  // The client gives text, whatever its type says.
  const endMs = new Date(spec.renewTime).getTime() + (spec.leaseDurationSeconds ?? DURATION_SEC) * 1000
  return { name, owner: seen !== 'unknown' ? seen : endMs < nowMs ? 'dead' : 'alive', endedMs: nowMs - endMs }
}
