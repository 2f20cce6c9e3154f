import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type Docker from 'dockerode'
import { SandglassError } from '../../errors/index.ts'
import { type Attached, unseal } from '../../sandbox/index.ts'
import { attach } from './attached-channel.ts'
import { type Daemon, dial } from './daemon.ts'
import { discard, isGone, isPaused } from './discard.ts'
import { statusOf } from './explain.ts'
import { hasOomKill } from './kernel-log.ts'
import { type ContainerHandle, ManagedContainer } from './managed-container.ts'
import type { OrphanRetry } from './orphan-retry.ts'

/** The options of the container to start. */
export interface ContainerStart {
  readonly name: string
  readonly config: Docker.ContainerCreateOptions
  /** The first bytes on its standard input. */
  readonly input: Uint8Array
  /** The key with which the harness authenticates its output; undefined if it does not. */
  readonly sealKey?: Uint8Array | undefined
  /** True if the input of the harness is authenticated, too. */
  readonly sealsBothWays: boolean
  /** Receives the id or the name of a container that cannot be removed now. */
  readonly orphans: OrphanRetry
  /**
   * The time that the daemon may take to create it, and to start it, in milliseconds. A busy daemon takes longer for both than
   * for other requests.
   */
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/**
 * Creates a container, attaches to it, sends `input` and starts it, in this order, so that no output is missed.
 * @throws SandglassError with the problem of daemon, image or runtime; then nothing is left.
 */
export async function startContainer(daemon: Daemon, start: ContainerStart): Promise<ManagedContainer> {
  const { sealKey, sealsBothWays, orphans, timeoutMs, signal } = start
  const input = sealKey === undefined ? start.input : Buffer.concat([start.input, sealKey])
  const container = await create(daemon, start)
  let attached: Attached | undefined
  try {
    attached = attach(await attachTo(daemon, container, signal))
    const { channel } = attached
    if (sealKey !== undefined) attached = unseal(attached, sealKey, sealsBothWays)
    const { exitCode } = await watchRemoval(daemon, container, signal)
    void channel.send(input).catch(() => undefined) // the end of the connection reports more details
    await daemon.call('start a container', container.start(), signal, timeoutMs)
    return new ManagedContainer(
      handleOf(daemon, container, exitCode, () => orphans.add(container.id)),
      attached,
    )
  } catch (error) {
    attached?.channel.close()
    // By id: a daemon that was killed meanwhile may have lost the name.
    if (!(await discard(daemon, container.id))) orphans.add(container.id)
    throw error
  }
}

/** Creates a container. A daemon finishes a creation even if its caller gave up: that container must be removed. */
async function create(daemon: Daemon, start: ContainerStart): Promise<Docker.Container> {
  const { name, config, orphans, timeoutMs, signal } = start
  // The client would also write the configuration into the URL, and proxies refuse long ones.
  const options = { _query: { name }, _body: config } as unknown as Docker.ContainerCreateOptions
  const creation = daemon.docker.createContainer(options)
  try {
    return await daemon.call('create a container', creation, signal, timeoutMs)
  } catch (error) {
    if (!(error instanceof SandglassError) || statusOf(error.cause) !== undefined) throw error // the daemon refused
    const late = creation.then(
      () => discard(daemon, name),
      () => false,
    )
    const waits = error.code === 'aborted'
    if (!waits || !(await daemon.call('create a container', late).catch(() => false))) orphans.add(name)
    throw error
  }
}

async function attachTo(daemon: Daemon, container: Docker.Container, signal?: AbortSignal): Promise<Duplex> {
  const options = { stream: true, hijack: true, stdin: true, stdout: true, stderr: true }
  const attaching = container.attach(options) as unknown as Promise<Duplex>
  try {
    return await daemon.call('attach to a container', attaching, signal)
  } catch (error) {
    attaching.then(
      (late) => late.on('error', () => {}).destroy(), // an error without a listener ends the host's process
      () => undefined,
    )
    throw error
  }
}

/** Resolves when the daemon watches; the inner promise settles when the container is removed, or the daemon is gone. */
async function watchRemoval(
  daemon: Daemon,
  { id }: Docker.Container,
  signal?: AbortSignal,
): Promise<{ readonly exitCode: Promise<number | null> }> {
  // Not `container.wait()`: it does not report when the daemon begins to watch, and does not settle when the daemon dies.
  const asked = dial<IncomingMessage>(daemon, {
    method: 'POST',
    path: `/containers/${id}/wait?`,
    options: { condition: 'removed' },
    isStream: true,
    statusCodes: { 200: true, 400: 'bad parameter', 404: 'no such container', 500: 'server error' },
  })
  try {
    return { exitCode: readExitCode(await daemon.call('watch a container', asked, signal)) }
  } catch (error) {
    asked.then(
      (late) => late.on('error', () => {}).destroy(),
      () => undefined,
    )
    throw error
  }
}

const MAX_RESPONSE_CHARS = 65_536

function readExitCode(answer: IncomingMessage): Promise<number | null> {
  return new Promise((resolve) => {
    let text = ''
    answer.setEncoding('utf8')
    answer.on('data', (piece: string) => {
      text = (text + piece).slice(0, MAX_RESPONSE_CHARS)
    })
    answer.on('error', () => resolve(null))
    answer.on('close', () => resolve(null))
    answer.on('end', () => resolve(parseExitCode(text)))
  })
}

function parseExitCode(text: string): number | null {
  try {
    const code = (JSON.parse(text) as { StatusCode?: unknown } | null)?.StatusCode
    return typeof code === 'number' ? code : null
  } catch {
    return null
  }
}

function handleOf(
  daemon: Daemon,
  container: Docker.Container,
  removed: Promise<number | null>,
  abandon: () => void,
): ContainerHandle {
  const kill = (): Promise<unknown> => daemon.call('kill a container', (abortSignal) => container.kill({ abortSignal }))
  return {
    id: container.id,
    timeoutMs: daemon.timeoutMs,
    removed,
    async kill() {
      try {
        await kill()
      } catch (error) {
        if (isGone(error)) return
        if (!isPaused(error)) throw error
        await daemon.call('unpause a container', (abortSignal) => container.unpause({ abortSignal }))
        await kill()
      }
    },
    async setCpus(cpus) {
      const NanoCpus = Math.round(cpus * 1e9)
      await daemon.call('change a container', (abortSignal) => container.update({ NanoCpus, abortSignal }))
    },
    async diedOfMemory() {
      return !daemon.remote && hasOomKill(container.id)
    },
    abandon,
  }
}
