import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { SandglassError } from '../errors/index.ts'
import { hasStarted, siblingModule } from '../support/index.ts'

/** A filled buffer for the thread, which gives it back, or the digest after the last one. */
export interface Filled {
  readonly buffer: ArrayBuffer
  readonly length: number
  readonly isLast: boolean
}

const BUFFER_BYTES = 1024 * 1024
/** Buffers of one content: one is filled while the thread hashes others. */
const BUFFERS = 4
/** The time after which an unused thread ends, in milliseconds. */
const IDLE_MS = 10_000

/** The SHA-256 of one content, computed by the thread. */
export class ThreadDigest implements Disposable {
  readonly #port: MessagePort
  readonly #release: () => void
  readonly #answers: (ArrayBuffer | string)[] = []
  #wake: () => void = () => {}
  #isClosed = false
  #filling: ArrayBuffer | undefined
  #used = 0
  #made = 0

  constructor(port: MessagePort, release: () => void) {
    this.#port = port
    this.#release = release
    port.on('message', (answer: ArrayBuffer | string) => {
      this.#answers.push(answer)
      this.#wake()
    })
    port.on('close', () => {
      this.#isClosed = true
      this.#wake()
    })
    // Content that nobody reads to its end does not keep the process alive.
    port.unref()
  }

  async update(piece: Uint8Array): Promise<void> {
    for (let at = 0; at < piece.byteLength;) {
      this.#filling ??= await this.#spare()
      const part = piece.subarray(at, at + BUFFER_BYTES - this.#used)
      new Uint8Array(this.#filling).set(part, this.#used)
      this.#used += part.byteLength
      at += part.byteLength
      if (this.#used === BUFFER_BYTES) this.#send(this.#filling, false)
    }
  }

  /** The digest in hexadecimal. */
  async end(): Promise<string> {
    this.#send(this.#filling ?? new ArrayBuffer(0), true)
    for (;;) {
      const answer = await this.#answer()
      if (typeof answer === 'string') return answer
    }
  }

  [Symbol.dispose](): void {
    this.#port.close()
    this.#release()
  }

  #send(buffer: ArrayBuffer, isLast: boolean): void {
    this.#port.postMessage({ buffer, length: this.#used, isLast } satisfies Filled, [buffer])
    this.#filling = undefined
    this.#used = 0
  }

  async #spare(): Promise<ArrayBuffer> {
    if (this.#answers.length === 0 && this.#made < BUFFERS) {
      this.#made += 1
      return new ArrayBuffer(BUFFER_BYTES)
    }
    return (await this.#answer()) as ArrayBuffer
  }

  /** @throws SandglassError `store_unusable` if the thread has ended. */
  async #answer(): Promise<ArrayBuffer | string> {
    this.#port.ref()
    try {
      for (;;) {
        const answer = this.#answers.shift()
        if (answer !== undefined) return answer
        if (this.#isClosed)
          throw new SandglassError('store_unusable', 'the thread that hashes content ended: try again')
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    } finally {
      this.#port.unref()
    }
  }
}

/** The thread that hashes large content, one for the whole process; it ends when nobody has used it for a while. */
class DigestThread {
  #worker: Promise<Worker | undefined> | undefined
  #users = 0
  #idle: NodeJS.Timeout | undefined

  async open(): Promise<ThreadDigest | undefined> {
    clearTimeout(this.#idle)
    this.#users += 1
    const worker = await (this.#worker ??= this.#start())
    if (worker === undefined) {
      this.#release()
      return undefined
    }
    const { port1, port2 } = new MessageChannel()
    worker.postMessage(port2, [port2])
    return new ThreadDigest(port1, () => this.#release())
  }

  #start(): Promise<Worker | undefined> {
    const started = startWorker(() => {
      if (this.#worker === started) this.#worker = undefined
    })
    return started
  }

  #release(): void {
    this.#users -= 1
    if (this.#users === 0) this.#idle = setTimeout(() => this.#end(), IDLE_MS).unref()
  }

  #end(): void {
    const ended = this.#worker
    this.#worker = undefined
    void ended?.then((worker) => worker?.terminate())
  }
}

/** Starts the thread. Undefined if that fails. */
async function startWorker(onExit: () => void): Promise<Worker | undefined> {
  try {
    const worker = new Worker(siblingModule(import.meta.url, 'digest-worker'), {
      name: 'sandglass-digest',
      // The thread needs nothing of the host's environment and flags.
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 },
    })
    worker.on('exit', onExit)
    // If it fails later, the ports of its users close.
    if (await hasStarted(worker)) {
      worker.unref()
      return worker
    }
    // The next one is started only after a while without content: each would wait for it.
    worker.off('exit', onExit)
    void worker.terminate()
    return undefined
  } catch {
    return undefined
  }
}

const thread = new DigestThread()

/** Starts the digest of one content. Undefined if the thread cannot be started, for example because the process may start none. */
export function digestInThread(): Promise<ThreadDigest | undefined> {
  return thread.open()
}
