import { SandglassError } from '../../errors/index.ts'
import type { Channel, Ending } from '../../sandbox/index.ts'

/** A connection to the standard streams of a container. */
export interface Attached {
  readonly channel: Channel
  /** The head of what the container wrote to its standard error, and what broke the connection, for messages. */
  lastWords(): string
  /** Settles when the connection ended, whoever ended it. */
  readonly ended: Promise<void>
}

/** What a daemon does with one container. Nothing here waits longer than an answer of the daemon may take. */
export interface ContainerHandle {
  /** The daemon's id of it. */
  readonly id: string
  /** How long the daemon may take to answer, in milliseconds. */
  readonly timeoutMs: number
  /** Its exit code, when it ended and was removed; null when the daemon can no longer tell. Never rejects. */
  readonly removed: Promise<number | null>
  /** Kills everything in it, paused or not; removes what cannot be killed. Rejects when that was not confirmed. */
  kill(): Promise<void>
  /** How much CPU time it gets per wall time. */
  setCpus(cpus: number): Promise<void>
  /** Whether the kernel says that it killed something in it for memory, where it can be asked. Never rejects. */
  diedOfMemory(): Promise<boolean>
  /** Takes note that nobody knows whether it still is there. */
  abandon(): void
}

/** How long after the end of its connection a container may take to be gone by itself. */
const LEAVING_MS = 5000
/** A kill for memory that is longer ago than that did not end the container. */
const MEMORY_KILL_MS = 2000
/** How long the daemon's word of such a kill may take after its word of the end: they come on two connections. */
const WORD_MS = 300

/**
 * A container driven over its attached standard input and output (requirement PO-03). It ends when the connection
 * does, so a host that is killed leaves none behind; the daemon removes it when it ended.
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
  /** Settles once, when the daemon said that it is gone, or can no longer be asked. Never rejects. */
  readonly closed: Promise<Ending>

  /** Containers are made by the engine. */
  constructor(handle: ContainerHandle, attached: Attached) {
    this.#handle = handle
    this.#attached = attached
    this.closed = this.#watch()
    void attached.ended.then(() => {
      this.#endedAt ??= performance.now()
      this.#expectEnd()
    })
  }

  /** The daemon's id of it. */
  get id(): string {
    return this.#handle.id
  }

  /** Its standard input and output. */
  get channel(): Channel {
    return this.#attached.channel
  }

  /** The head of its standard error. */
  lastWords(): string {
    return this.#attached.lastWords()
  }

  /** Says that the daemon told just now of a process in it that the kernel killed for memory. */
  noteOutOfMemory(): void {
    this.#memoryKillAt = performance.now()
    this.#onMemoryKill?.()
  }

  /**
   * Gives it so much of the processor until what this returns is disposed of, and then `limit` again. Disposing rejects
   * when that could not be done.
   */
  liftCpuLimit(all: number, limit: number): AsyncDisposable {
    const lifted = this.#handle.setCpus(all).then(
      () => true,
      () => false, // the limit stays in force
    )
    return {
      [Symbol.asyncDispose]: async () => {
        if (await lifted) await this.#handle.setCpus(limit)
      },
    }
  }

  /** Whether its share of the processor can be changed while it runs: not every runtime lets the daemon. Undefined without an answer. */
  canChangeCpus(cpus: number): Promise<boolean | undefined> {
    return this.#handle.setCpus(cpus).then(
      () => true,
      (error: unknown) => (error instanceof SandglassError && error.code === 'docker_unreachable' ? undefined : false),
    )
  }

  /** Kills everything in it, paused or not; resolves when the daemon confirmed that it is gone, or is gone itself. */
  kill(): Promise<void> {
    // One that was lost before keeps its own cause.
    if (!this.#disconnected) this.#killed = true
    this.#ending ??= this.#end()
    return this.#ending
  }

  async #end(): Promise<void> {
    const timer = setTimeout(() => this.#giveUp.resolve(null), this.#handle.timeoutMs)
    const killed = this.#isGone ? Promise.resolve() : this.#handle.kill()
    // Also one that the daemon does not get to now ends by the end of its input.
    this.#attached.channel.close()
    const settled = Promise.all([this.closed, killed]).catch(() => undefined)
    await Promise.race([settled, this.#giveUp.promise])
    clearTimeout(timer)
    // A daemon that was lost meanwhile, or that only says that it does not run, has not removed it for certain.
    if (!this.#isGone) this.#handle.abandon()
    this.#giveUp.resolve(null)
    await this.closed
  }

  /** The daemon ends the connection when the container ended. Else, it is the connection that broke. */
  #expectEnd(): void {
    this.#disconnected = true
    if (this.#ending !== undefined) return
    const timer = setTimeout(() => void this.kill(), LEAVING_MS)
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
    const message = this.lastWords().trim()
    this.#attached.channel.close()
    return {
      cause: killed ? 'destroyed' : causeOf(exitCode, signal, outOfMemory),
      exitCode: signal === undefined ? exitCode : null,
      signal: signal ?? null,
      by: killed ? 'host' : outOfMemory ? 'kernel' : 'unknown',
      ...(message === '' ? {} : { message }),
    }
  }

  /** Whether a kill for memory is what ended it: a script may go on for long after one of a child of its own. */
  async #diedOfMemory(endedAt: number): Promise<boolean> {
    const isRecent = (): boolean => this.#memoryKillAt !== undefined && endedAt - this.#memoryKillAt < MEMORY_KILL_MS
    if (isRecent()) return true
    const told = this.#memoryKillAt !== undefined
    const { promise: word, resolve } = Promise.withResolvers<void>()
    this.#onMemoryKill = resolve
    const timer = setTimeout(resolve, WORD_MS)
    await word
    clearTimeout(timer)
    // Under load the daemon may miss what the kernel did. Its log does not tell of the last of several.
    return isRecent() || (!told && this.#handle.diedOfMemory())
  }
}

function causeOf(exitCode: number | null, signal: string | undefined, outOfMemory: boolean): Ending['cause'] {
  if (exitCode === null) return 'channel-closed'
  if (outOfMemory) return 'memory-limit'
  return signal === undefined ? 'exit' : 'signal'
}

/** Linux's names by number, also where this process runs on another system. */
const SIGNALS: readonly (string | undefined)[] =
  `- HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS`
    .split(' ')
    .map((name) => (name === '-' ? undefined : `SIG${name}`))
