import { messageOf, SandglassError } from '../../errors/index.ts'
import type { Attached } from '../../sandbox/index.ts'
import type { Archive, Archives } from './archive.ts'
import type { Cluster } from './cluster.ts'
import { type PodPlan, RELAY, unpackCommand } from './pod-spec.ts'
import type { SentDirectory } from './pod-directories.ts'
import { attach } from './relay-channel.ts'

/** The answer of harness/unpack.py. */
const UNPACKED = 'unpacked'

/** Directories of this host that are packed for one pod. */
export class Deliveries implements Disposable {
  readonly #packed: (readonly [SentDirectory, Archive])[] = []

  /** @throws SandglassError as `Archives.use`. */
  static async pack(
    directories: readonly SentDirectory[],
    archives: Archives,
    signal: AbortSignal | undefined,
  ): Promise<Deliveries> {
    const deliveries = new Deliveries()
    try {
      for (const one of directories) deliveries.#packed.push([one, await archives.use(one.listing, signal)])
      return deliveries
    } catch (error) {
      deliveries[Symbol.dispose]()
      throw error
    }
  }

  /**
   * Sends them to a running pod, into volumes that the sandbox has read-only. No script exists yet.
   * @throws SandglassError as `Cluster.exec`; `sandbox_setup_failed` if the pod does not take them in time; `aborted`.
   */
  async send(cluster: Cluster, plan: PodPlan, timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
    const deadline = performance.now() + timeoutMs
    for (const [{ path, listing }, archive] of this.#packed) {
      const socket = await cluster.exec(plan.name, RELAY, unpackCommand(plan, path), signal)
      try {
        await sendArchive(attach(socket), archive, deadline - performance.now(), signal)
      } catch (error) {
        if (signal?.aborted === true) throw new SandglassError('aborted', 'aborted while a pod got its packages')
        const what = `${listing.directory} could not be sent to the pod`
        throw new SandglassError('sandbox_setup_failed', `${what}: ${messageOf(error)}`, { cause: error })
      }
    }
  }

  [Symbol.dispose](): void {
    for (const [, archive] of this.#packed) archive[Symbol.dispose]()
  }
}

/** Sends an archive, and waits until it is unpacked. @throws Error with the reason. */
async function sendArchive(
  attached: Attached,
  archive: Archive,
  withinMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { channel } = attached
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    channel.close()
  }, withinMs)
  const onAbort = (): void => channel.close()
  signal?.addEventListener('abort', onAbort)
  if (signal?.aborted === true) onAbort()
  try {
    for await (const piece of archive.pieces()) await channel.send(piece)
    const answer = await channel.receive()
    if (answer === null || String(Buffer.from(answer)).trim() !== UNPACKED)
      throw new Error('the pod did not confirm it')
  } catch (error) {
    const words = attached.lastOutput().trim()
    const why = isLate ? 'it took longer than kubernetes.startTimeoutMs' : words === '' ? messageOf(error) : words
    throw new Error(why, { cause: error })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
    channel.close()
  }
}
