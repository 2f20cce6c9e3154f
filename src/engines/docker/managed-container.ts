import type { Channel, Ending } from '../../sandbox/index.ts'

/** A connection to the standard streams of a container. */
export interface Attached {
  readonly channel: Channel
  /** The head of what the container wrote to its standard error, for messages. */
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
  #outOfMemory = false
  /** Settles once, when the daemon said that it is gone, or can no longer be asked. Never rejects. */
  readonly closed: Promise<Ending>

  /** Containers are made by the engine. */
  constructor(handle: ContainerHandle, attached: Attached) {
    this.#handle = handle
    this.#attached = attached
    this.closed = this.#watch()
    void attached.ended.then(() => this.#expectEnd())
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

  /** Says that the daemon told of a process in it that the kernel killed for memory. */
  noteOutOfMemory(): void {
    this.#outOfMemory = true
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

  /** Whether its share of the processor can be changed while it runs: not every runtime lets the daemon. */
  canChangeCpus(cpus: number): Promise<boolean> {
    return this.#handle.setCpus(cpus).then(
      () => true,
      () => false,
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
    const confirmed = Promise.all([this.closed, killed]).then(
      () => true,
      () => this.#isGone,
    )
    const isOver = await Promise.race([confirmed, this.#giveUp.promise])
    clearTimeout(timer)
    if (isOver !== true && !this.#isGone) this.#handle.abandon()
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
    // Under load the daemon may miss what the kernel did.
    if (exitCode === 137 && !this.#killed && !this.#outOfMemory) this.#outOfMemory = await this.#handle.diedOfMemory()
    const signal = exitCode !== null && exitCode > 128 ? SIGNALS.get(exitCode - 128) : undefined
    const message = this.lastWords().trim()
    this.#attached.channel.close()
    return {
      cause: this.#killed ? 'destroyed' : this.#causeOf(exitCode),
      exitCode: signal === undefined ? exitCode : null,
      signal: signal ?? null,
      by: this.#killed ? 'host' : this.#outOfMemory ? 'kernel' : 'unknown',
      ...(message === '' ? {} : { message }),
    }
  }

  #causeOf(exitCode: number | null): Ending['cause'] {
    if (exitCode === null) return 'channel-closed'
    if (exitCode === 137) return this.#outOfMemory ? 'memory-limit' : 'signal'
    return 'exit'
  }
}

const SIGNALS = new Map([
  [6, 'SIGABRT'],
  [9, 'SIGKILL'],
  [11, 'SIGSEGV'],
  [15, 'SIGTERM'],
])
