import type { V1ContainerStateTerminated, V1Pod } from '@kubernetes/client-node'
import type { Attached, Channel, Ending } from '../../sandbox/index.ts'
import type { Cluster } from './cluster.ts'
import { isMissing } from './explain.ts'
import { containerIn, endOf, isEndOfKernel, NOT_READ, type PodEnd } from './pod-end.ts'
import { SANDBOX } from './pod-spec.ts'

/** The time in which a node reports that a container ended. */
const REPORT_MS = 5000
/** The time in which a node ends the containers of a deleted pod. */
const GONE_MS = 15_000
/** The time in which the containers of a deleted pod may end by themselves. Not 0: the object would go before its containers. */
const GRACE_SEC = 1
const FIRST_PAUSE_MS = 50
const MAX_PAUSE_MS = 250

/**
 * A pod driven over the channel of its sandbox. It ends when the channel does, so a killed host leaves no process behind; then the
 * object is deleted.
 */
export class ManagedPod {
  readonly name: string
  readonly #cluster: Cluster
  readonly #attached: Attached
  readonly #abandon: () => void
  readonly channel: Channel
  #heardMs = performance.now()
  #killed = false
  #isOver = false
  #lost: string | undefined
  /** The end of a kernel that its node did not report before it had to delete the pod. Other ends then are those of the deletion. */
  #endOfKernel: V1ContainerStateTerminated | undefined
  /** Settles once, when the node confirmed that the sandbox ended, or the API server does not answer. Never rejects. */
  readonly closed: Promise<Ending>
  /** Settles after `closed`: true when the object is gone, false if that takes too long. Never rejects. */
  readonly removed: Promise<boolean>

  constructor(cluster: Cluster, name: string, attached: Attached, abandon: () => void) {
    this.name = name
    this.#cluster = cluster
    this.#attached = attached
    this.#abandon = abandon
    this.channel = this.#listenTo(attached.channel)
    const end = this.#readEnd()
    this.removed = end.then(() => this.#remove())
    this.closed = this.#watch(end)
  }

  /** The beginning of its stderr. */
  lastOutput(): string {
    return this.#attached.lastOutput()
  }

  /** The milliseconds since something came from the sandbox. */
  get silentMs(): number {
    return performance.now() - this.#heardMs
  }

  /** Gives it up, for a reason that Kubernetes told: its node is not waited for. */
  lose(why: string): void {
    this.#lost = why
    this.#attached.channel.close()
  }

  /** Ends everything in it; resolves when the object is gone, or nobody answers for it. */
  async kill(): Promise<void> {
    // A pod whose connection ended first keeps that cause.
    if (!this.#isOver) this.#killed = true
    this.#attached.channel.close()
    await (this.#lost === undefined ? this.removed : this.closed)
  }

  async #watch(reading: Promise<PodEnd>): Promise<Ending> {
    const { terminated: reported, isOver, why } = await reading
    if (!isOver) await this.removed
    const terminated = reported ?? this.#endOfKernel
    const words = [why === '' ? '' : `Kubernetes: ${why}`, this.lastOutput().trim()].filter((one) => one !== '')
    const message = words.length === 0 ? {} : { message: words.join('; ') }
    if (this.#killed) return { cause: 'destroyed', exitCode: null, signal: null, by: 'host', ...message }
    if (terminated === undefined) {
      return { cause: 'channel-closed', exitCode: null, signal: null, by: 'unknown', ...message }
    }
    const { exitCode } = terminated
    // The reason also stands there if only a script was killed, by which a container does not end.
    const outOfMemory = isEndOfKernel(terminated) || (terminated.reason === 'OOMKilled' && exitCode === 137)
    return {
      cause: outOfMemory ? 'memory-limit' : exitCode > 128 ? 'signal' : 'exit',
      exitCode: outOfMemory || exitCode > 128 ? null : exitCode,
      signal: outOfMemory || exitCode === 137 ? 'SIGKILL' : null,
      by: outOfMemory ? 'kernel' : 'unknown',
      ...message,
    }
  }

  /** Waits for the end of the connection, then reads that of the sandbox, which its node may not report in time. */
  async #readEnd(): Promise<PodEnd> {
    await this.#attached.ended
    this.#isOver = true
    let end = NOT_READ
    if (this.#killed) return end
    if (this.#lost !== undefined) return { ...end, isOver: true, why: this.#lost }
    const isOver = (pod: V1Pod | undefined): boolean => {
      end = endOf(pod, end)
      return end.isOver
    }
    await pollPod(this.#cluster, this.name, isOver, REPORT_MS).catch(() => undefined)
    return end
  }

  #listenTo(channel: Channel): Channel {
    return {
      receive: async () => {
        const piece = await channel.receive()
        this.#heardMs = performance.now()
        return piece
      },
      release: () => channel.release?.(),
      send: (bytes) => channel.send(bytes),
      close: () => channel.close(),
    }
  }

  async #remove(): Promise<boolean> {
    const isGone = await removePod(this.#cluster, this.name, undefined, (pod) => {
      const terminated = containerIn(pod, SANDBOX)?.state?.terminated
      if (terminated !== undefined && isEndOfKernel(terminated)) this.#endOfKernel = terminated
    })
    if (!isGone) this.#abandon()
    return isGone
  }
}

/** Asks for the deletion of a pod. Resolves to true when there is none. Never rejects. */
export async function deletePod(cluster: Cluster, name: string): Promise<boolean> {
  try {
    await askToDelete(cluster, name)
    return false
  } catch (error) {
    return isMissing(error)
  }
}

/**
 * Deletes a pod. Resolves to true when its node confirmed that nothing of it runs; false if that takes too long. Never rejects.
 * @param see gets the pod each time that it is read meanwhile.
 */
export async function removePod(
  cluster: Cluster,
  name: string,
  signal?: AbortSignal,
  see?: (pod: V1Pod) => void,
): Promise<boolean> {
  const isGone = (pod: V1Pod | undefined): boolean => {
    if (pod !== undefined) see?.(pod)
    return pod === undefined
  }
  try {
    await askToDelete(cluster, name, signal)
    return await pollPod(cluster, name, isGone, GONE_MS, signal)
  } catch (error) {
    return isMissing(error)
  }
}

async function askToDelete(cluster: Cluster, name: string, signal?: AbortSignal): Promise<void> {
  const request = { name, namespace: cluster.namespace, gracePeriodSeconds: GRACE_SEC }
  await cluster.call('delete a pod', (api) => api.deleteNamespacedPod(request), signal)
}

/**
 * Reads a pod until `isDone`, which gets undefined when there is none. Resolves to false if the time is over first.
 * @throws SandglassError of the request, and what `isDone` throws.
 */
export async function pollPod(
  cluster: Cluster,
  name: string,
  isDone: (pod: V1Pod | undefined) => boolean,
  withinMs: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const deadline = performance.now() + withinMs
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 1.5)) {
    if (isDone(await readPod(cluster, name, signal))) return true
    if (performance.now() > deadline) return false
    await pause(pauseMs)
  }
}

async function readPod(cluster: Cluster, name: string, signal?: AbortSignal): Promise<V1Pod | undefined> {
  try {
    const { namespace } = cluster
    return await cluster.call('read a pod', (api) => api.readNamespacedPod({ name, namespace }), signal)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** Waits. Unlike most timers of the engine, it keeps the host's process alive: somebody waits for what follows. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
