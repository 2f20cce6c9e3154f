import { SandglassError } from '../../errors/index.ts'
import type { Attached, Channel, Ending } from '../../sandbox/index.ts'

/** The requests that a daemon serves for one container. Each waits at most for the timeout of a request. */
export interface ContainerHandle {
  /** The id that the daemon gave it. */
  readonly id: string
  /** The time that the daemon may take to answer, in milliseconds. */
  readonly timeoutMs: number
  /** Resolves to its exit code when it was removed; null when the daemon does not know it. Never rejects. */
  readonly removed: Promise<number | null>
  /** Kills everything in it, paused or not; removes what cannot be killed. Rejects without a confirmation. */
  kill(): Promise<void>
  /** Sets its CPU time per wall time. */
  setCpus(cpus: number): Promise<void>
  /** Resolves to true if the kernel's log reports an OOM kill in it. Never rejects. */
  diedOfMemory(): Promise<boolean>
  /** Records that its removal was not confirmed. */
  abandon(): void
}

/** The time that a container may take to end after its connection ended. */
const END_MS = 5000
/** An OOM kill that is older than this did not end the container. */
const MEMORY_KILL_MS = 2000
/** The time that the event of an OOM kill may arrive after the end, on another connection. */
const EVENT_MS = 300

/**
 * A container driven over its attached standard input and output. It ends when the connection does, so a killed host
 * leaves none behind. The daemon removes it when it has ended.
 */
export class ManagedContainer {
  readonly #handle: ContainerHandle
  readonly #attached: Attached
  readonly #giveUp = Promise.withResolvers<null>()
  #ending: Promise<void> | undefined
  #disconnected = false
  #isGone = false
  #killed = false
  #endedAt: number | undefined
  #memoryKillAt: number | undefined
  #onMemoryKill: (() => void) | undefined
  /** Settles once, when the daemon confirmed that it is gone or does not answer any more. Never rejects. */
  readonly closed: Promise<Ending>

  /** Only the engine creates containers. */
  constructor(handle: ContainerHandle, attached: Attached) {
    this.#handle = handle
    this.#attached = attached
    this.closed = this.#watch()
    void attached.ended.then(() => {
      this.#endedAt ??= performance.now()
      this.#expectEnd()
    })
  }

  /** The id that the daemon gave it. */
  get id(): string {
    return this.#handle.id
  }

  /** Its standard input and output. */
  get channel(): Channel {
    return this.#attached.channel
  }

  /** The beginning of its stderr. */
  lastOutput(): string {
    return this.#attached.lastOutput()
  }

  /** Records that the daemon reported an OOM kill in it. */
  noteOutOfMemory(): void {
    this.#memoryKillAt = performance.now()
    this.#onMemoryKill?.()
  }

  /** Sets its CPU time per wall time. Rejects if the daemon cannot set it. */
  setCpus(cpus: number): Promise<void> {
    return this.#handle.setCpus(cpus)
  }

  /**
   * Resolves to true if its CPU limit can be changed while it runs, which not every runtime allows; undefined without an
   * answer.
   */
  canChangeCpus(cpus: number): Promise<boolean | undefined> {
    return this.#handle.setCpus(cpus).then(
      () => true,
      (error: unknown) => (error instanceof SandglassError && error.code === 'docker_unreachable' ? undefined : false),
    )
  }

  /** Kills everything in it, paused or not; resolves when the daemon confirmed that it is gone, or is gone itself. */
  kill(): Promise<void> {
    // A container whose connection ended first keeps that cause.
    if (!this.#disconnected) this.#killed = true
    this.#ending ??= this.#end()
    return this.#ending
  }

  async #end(): Promise<void> {
    const timer = setTimeout(() => this.#giveUp.resolve(null), this.#handle.timeoutMs)
    const killed = this.#isGone ? Promise.resolve() : this.#handle.kill()
    // A container that the daemon cannot kill now ends with its input.
    this.#attached.channel.close()
    const settled = Promise.all([this.closed, killed]).catch(() => undefined)
    await Promise.race([settled, this.#giveUp.promise])
    clearTimeout(timer)
    // A daemon that did not answer, or only reported that the container does not run, may not have removed it.
    if (!this.#isGone) this.#handle.abandon()
    this.#giveUp.resolve(null)
    await this.closed
  }

  /** Kills the container if only its connection broke: the daemon reports the end of a container soon after the connection's. */
  #expectEnd(): void {
    this.#disconnected = true
    if (this.#ending !== undefined) return
    const timer = setTimeout(() => void this.kill(), END_MS)
    timer.unref()
    void this.closed.then(() => clearTimeout(timer))
  }

  async #watch(): Promise<Ending> {
    const exitCode = await Promise.race([this.#handle.removed, this.#giveUp.promise])
    this.#isGone = exitCode !== null
    this.#endedAt ??= performance.now()
    const killed = this.#killed
    const outOfMemory = exitCode === 137 && !killed && (await this.#diedOfMemory(this.#endedAt))
    const signal = exitCode !== null && exitCode > 128 ? SIGNALS[exitCode - 128] : undefined
    const message = this.lastOutput().trim()
    // Otherwise it stays open until it is killed, because a slow reader may not have read its last frames.
    if (killed) this.#attached.channel.close()
    return {
      cause: killed ? 'destroyed' : causeOf(exitCode, signal, outOfMemory),
      exitCode: signal === undefined ? exitCode : null,
      signal: signal ?? null,
      by: killed ? 'host' : outOfMemory ? 'kernel' : 'unknown',
      ...(message === '' ? {} : { message }),
    }
  }

  /** True if an OOM kill ended it: a script may continue after the OOM kill of a child. */
  async #diedOfMemory(endedAt: number): Promise<boolean> {
    const isRecent = (): boolean => this.#memoryKillAt !== undefined && endedAt - this.#memoryKillAt < MEMORY_KILL_MS
    if (isRecent()) return true
    const isReported = this.#memoryKillAt !== undefined
    const { promise: reported, resolve } = Promise.withResolvers<void>()
    this.#onMemoryKill = resolve
    const timer = setTimeout(resolve, EVENT_MS)
    await reported
    clearTimeout(timer)
    // Under load the daemon may miss the event. The log of the kernel may lack the last of several kills.
    return isRecent() || (!isReported && this.#handle.diedOfMemory())
  }
}

function causeOf(exitCode: number | null, signal: string | undefined, outOfMemory: boolean): Ending['cause'] {
  if (exitCode === null) return 'channel-closed'
  if (outOfMemory) return 'memory-limit'
  return signal === undefined ? 'exit' : 'signal'
}

/** The names of signals on Linux by number: this process may run on another system. */
const SIGNALS: readonly (string | undefined)[] =
  `- HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS`
    .split(' ')
    .map((name) => (name === '-' ? undefined : `SIG${name}`))
