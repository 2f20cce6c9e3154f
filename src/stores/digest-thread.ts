import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { SandglassError } from '../errors/index.ts'
import { hasStarted, siblingModule } from '../support/index.ts'

/** The data that the thread gets for one content: a port, and memory that it shares with the host's thread, in buffers of equal size. */
export interface Hashed {
  readonly port: MessagePort
  readonly memory: SharedArrayBuffer
  readonly bufferBytes: number
}

/** A filled buffer for the thread, which answers with its number or, after the last one, with the digest. */
export interface Filled {
  readonly buffer: number
  readonly length: number
  readonly isLast: boolean
}

const BUFFER_BYTES = 2 * 1024 * 1024
/** Buffers of one content: one is filled while others are hashed and written. */
const BUFFERS = 4
/** The time after which an unused thread ends, in milliseconds. */
const IDLE_MS = 10_000

/**
 * The SHA-256 of one content, computed by the thread. Pieces reach it in one of two ways. {@link ThreadDigest.take} copies them into
 * buffers that the threads share, and the caller may write these buffers to the disk. {@link ThreadDigest.pass} transfers the memory of the
 * piece itself.
 */
export class ThreadDigest implements Disposable {
  readonly #port: MessagePort
  readonly #release: () => void
  readonly #memory: SharedArrayBuffer
  readonly #free: number[] = Array.from({ length: BUFFERS }, (_, buffer) => buffer)
  /** Filled buffers that both the thread and the caller of {@link take} still need. */
  readonly #needed = new Set<number>()
  /** The buffer that was yielded last; the caller needs it until it requests the second one after it. */
  #given: number | undefined
  /** Pieces that the thread has hashed and returned. */
  readonly #passed: Uint8Array<ArrayBuffer>[] = []
  #digest: string | undefined
  #wake: () => void = () => {}
  #isClosed = false
  #filling: number | undefined
  #used = 0

  constructor(port: MessagePort, memory: SharedArrayBuffer, release: () => void) {
    this.#port = port
    this.#memory = memory
    this.#release = release
    port.on('message', (answer: number | string | Uint8Array<ArrayBuffer>) => {
      if (typeof answer === 'number') this.#drop(answer)
      else if (typeof answer === 'string') this.#digest = answer
      else this.#passed.push(answer)
      this.#wake()
    })
    port.on('close', () => {
      this.#isClosed = true
      this.#wake()
    })
    // Content that is never read to its end must not keep the process alive.
    port.unref()
  }

  /**
   * Copies a piece, and yields the buffers that it fills. Each stays valid until the second buffer after it is requested.
   * @throws SandglassError `store_unusable` if the thread has ended.
   */
  async *take(piece: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
    for (let at = 0; at < piece.byteLength;) {
      this.#filling ??= await this.#awaitAnswer(() => this.#free.pop())
      const part = piece.subarray(at, at + BUFFER_BYTES - this.#used)
      this.#bufferAt(this.#filling).set(part, this.#used)
      this.#used += part.byteLength
      at += part.byteLength
      if (this.#used < BUFFER_BYTES) continue
      const full = this.#filling
      yield this.#send(full, false)
      if (this.#given !== undefined) this.#drop(this.#given)
      this.#given = full
    }
  }

  /** Transfers a piece to the thread; {@link takePassed} returns it. Nothing else may use its memory. */
  pass(piece: Uint8Array<ArrayBuffer>): void {
    this.#port.postMessage(piece, [piece.buffer])
  }

  /** The next piece that was hashed, in their order. @throws SandglassError `store_unusable` if the thread has ended. */
  async takePassed(): Promise<Uint8Array> {
    const { buffer, byteOffset, byteLength } = await this.#awaitAnswer(() => this.#passed.shift())
    return Buffer.from(buffer, byteOffset, byteLength)
  }

  /** Ends the content. Returns the bytes that are left in the last buffer. */
  finish(): Uint8Array {
    return this.#send(this.#filling ?? 0, true)
  }

  /** The digest in hexadecimal, after {@link finish}. @throws SandglassError `store_unusable` if the thread has ended. */
  async digest(): Promise<string> {
    return this.#awaitAnswer(() => this.#digest)
  }

  /** Releases the thread. The caller must not use the pieces of {@link take} and {@link finish} afterwards. */
  [Symbol.dispose](): void {
    this.#port.close()
    this.#release()
  }

  #send(buffer: number, isLast: boolean): Uint8Array {
    const length = this.#used
    this.#port.postMessage({ buffer, length, isLast } satisfies Filled)
    this.#needed.add(buffer)
    this.#filling = undefined
    this.#used = 0
    return this.#bufferAt(buffer).subarray(0, length)
  }

  /** Called once by the thread and once by the reader when they no longer need a buffer, which is then free. */
  #drop(buffer: number): void {
    if (!this.#needed.delete(buffer)) this.#free.push(buffer)
  }

  #bufferAt(buffer: number): Uint8Array {
    return new Uint8Array(this.#memory, buffer * BUFFER_BYTES, BUFFER_BYTES)
  }

  /** Waits until `take` returns a value. @throws SandglassError `store_unusable` if the thread has ended. */
  async #awaitAnswer<T>(take: () => T | undefined): Promise<T> {
    this.#port.ref()
    try {
      for (;;) {
        const taken = take()
        if (taken !== undefined) return taken
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
  /** The memory of the last content, reused for the next one: otherwise it would stay allocated until a garbage collection. */
  #spare: SharedArrayBuffer | undefined

  async open(): Promise<ThreadDigest | undefined> {
    clearTimeout(this.#idle)
    this.#users += 1
    const worker = await (this.#worker ??= this.#start())
    if (worker === undefined) {
      this.#release()
      return undefined
    }
    const { port1, port2 } = new MessageChannel()
    const memory = this.#spare ?? new SharedArrayBuffer(BUFFERS * BUFFER_BYTES)
    this.#spare = undefined
    worker.postMessage({ port: port2, memory, bufferBytes: BUFFER_BYTES } satisfies Hashed, [port2])
    return new ThreadDigest(port1, memory, () => {
      this.#spare = memory
      this.#release()
    })
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
    this.#spare = undefined
    void ended?.then((worker) => worker?.terminate())
  }
}

/** Starts the thread. Undefined if that fails. */
async function startWorker(onExit: () => void): Promise<Worker | undefined> {
  try {
    const worker = new Worker(siblingModule(import.meta.url, 'digest-worker'), {
      name: 'sandglass-digest',
      // The thread does not need the host's environment and flags.
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 },
    })
    worker.on('exit', onExit)
    // If the thread fails later, the ports of its users close.
    if (await hasStarted(worker)) {
      worker.unref()
      return worker
    }
    // Keep the failure until the thread has been idle for a while: otherwise each content would wait for another start.
    worker.off('exit', onExit)
    void worker.terminate()
    return undefined
  } catch {
    return undefined
  }
}

const thread = new DigestThread()

/** Starts the digest of one content. Undefined if the thread cannot be started. */
export function digestInThread(): Promise<ThreadDigest | undefined> {
  return thread.open()
}
