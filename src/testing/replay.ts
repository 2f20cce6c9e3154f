import { type HostFrame, LineSplitter, PROTOCOL_VERSION } from '../protocol/index.ts'
import { type Channel, DEFAULT_LIMITS, type Ending, type Sandbox, type SandboxInfo } from '../sandbox/index.ts'

/** The behaviour of a {@link replayChannel} beyond its bytes. */
export interface ReplayOptions {
  /** The moment at which the bytes are delivered: once an `execute` frame was sent (the default), or at once. */
  readonly start?: 'execute' | 'at-once'
  /** The state after the bytes: the channel ends (the default), or stays open and silent until it is destroyed. */
  readonly after?: 'close' | 'open'
  /** The value of `closed` after the channel ended; `'never'`: not before `destroy`. Default: exit code 0. */
  readonly ending?: Ending | 'never'
  /** The value of `memoryKills()` after the first chunk or the end (0 before); null if nothing counts. Default 0. */
  readonly memoryKills?: number | null
  /** Returns the bytes to deliver in answer to a frame of the host, for example `cancel`. */
  readonly respond?: (frame: HostFrame) => Uint8Array | undefined
  /** `'reject'`: sends fail as on a closed channel; `'block'`: the peer reads nothing, so that no send ever resolves. */
  readonly send?: 'reject' | 'block'
  readonly info?: Partial<SandboxInfo>
  /** Fields that differ in the frame `ready`. */
  readonly ready?: Partial<Sandbox['ready']>
}

/** A sandbox that plays back recorded bytes; made by {@link replayChannel}. */
export interface ReplaySandbox extends Sandbox {
  /** The frames that the host sent, in order. */
  readonly sent: readonly HostFrame[]
  /** The number of chunks received so far. */
  readonly received: number
  readonly destroyed: boolean
}

const MAX_HOST_LINE = 256 * 1024 * 1024
const EXITED: Ending = { cause: 'exit', exitCode: 0, signal: null, by: 'harness' }
const DESTROYED: Ending = { cause: 'destroyed', exitCode: null, signal: 'SIGKILL', by: 'host' }

/**
 * A sandbox without a process: its channel delivers the given bytes in the given pieces, and records the frames that it
 * receives. It tests code that talks to a harness, also to a hostile one.
 */
export function replayChannel(bytes: Uint8Array | Iterable<Uint8Array>, options: ReplayOptions = {}): ReplaySandbox {
  return new Replay(bytes instanceof Uint8Array ? [bytes] : bytes, options)
}

/** Frames, or any JSON values, as lines of the wire. */
export function wireLines(...values: readonly unknown[]): Uint8Array {
  return Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(''))
}

class Replay implements ReplaySandbox, Channel {
  readonly id = 'replay'
  readonly info: SandboxInfo
  readonly ready: Sandbox['ready']
  readonly sent: HostFrame[] = []
  readonly closed: Promise<Ending>
  readonly #options: ReplayOptions
  readonly #bytes: Iterator<Uint8Array, unknown>
  readonly #splitter = new LineSplitter(MAX_HOST_LINE)
  readonly #answers: Uint8Array[] = []
  readonly #settle: (ending: Ending) => void
  #change = Promise.withResolvers<void>()
  #started: boolean
  #played = false
  #ended = false
  received = 0
  destroyed = false

  constructor(bytes: Iterable<Uint8Array>, options: ReplayOptions) {
    this.#options = options
    this.ready = {
      type: 'ready',
      protocol: PROTOCOL_VERSION,
      python: '3.11.2',
      tools: { loaded: [], failed: [] },
      preload: { loaded: [], failed: [], deferred: [] },
      checks: {},
      ...options.ready,
    }
    this.#bytes = bytes[Symbol.iterator]()
    const { memoryBytes, cpus, pids, diskBytes } = DEFAULT_LIMITS
    this.info = {
      engine: 'replay',
      level: 'none',
      python: this.ready.python,
      network: 'none',
      limitsEnforced: [],
      limits: { memoryBytes, cpus, pids, diskBytes },
      ...options.info,
    }
    const { promise, resolve } = Promise.withResolvers<Ending>()
    this.closed = promise
    this.#settle = resolve
    this.#started = options.start === 'at-once'
  }

  get channel(): Channel {
    return this
  }

  memoryKills(): number | null {
    const { memoryKills = 0 } = this.#options
    return memoryKills === null || this.#played || this.received > 0 ? memoryKills : 0
  }

  async receive(): Promise<Uint8Array | null> {
    for (;;) {
      if (this.#ended) return null
      const answer = this.#answers.shift()
      if (answer !== undefined) return this.#deliver(answer)
      if (this.#started && !this.#played) {
        const next = this.#bytes.next()
        if (next.done !== true) return this.#deliver(next.value)
        this.#played = true
        if (this.#options.after !== 'open') this.#end()
        continue
      }
      await this.#change.promise
      this.#change = Promise.withResolvers<void>()
    }
  }

  async send(bytes: Uint8Array): Promise<void> {
    if (this.#options.send === 'block') return Promise.withResolvers<void>().promise
    if (this.#options.send === 'reject' || this.#ended) throw new Error('EPIPE: the peer is gone')
    for (const line of this.#splitter.push(bytes)) this.#take(JSON.parse(line.toString()) as HostFrame)
  }

  close(): void {
    this.#ended = true
    this.#change.resolve()
  }

  async destroy(): Promise<void> {
    this.destroyed = true
    this.close()
    this.#settle(DESTROYED)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy()
  }

  #take(frame: HostFrame): void {
    this.sent.push(frame)
    if (frame.type === 'execute') this.#started = true
    const answer = this.#options.respond?.(frame)
    if (answer !== undefined) this.#answers.push(answer)
    this.#change.resolve()
  }

  #deliver(chunk: Uint8Array): Uint8Array {
    this.received += 1
    return chunk
  }

  #end(): void {
    this.#ended = true
    const { ending = EXITED } = this.#options
    if (ending !== 'never') this.#settle(ending)
  }
}
