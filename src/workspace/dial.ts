import { Duplex } from 'node:stream'
import type { ActivityStream } from '../protocol/index.ts'
import { type Activity, type ActivityEnd, type ActivityHandler, OUTPUT_WINDOW_BYTES } from './activity.ts'
import { abortedError, checkWhole, failureOf } from './failures.ts'
import type { Link } from './link.ts'

/**
 * Connects to a port of the sandbox's own loopback. The connection emits `connect`, and `error` with a SandglassError
 * (`connection_refused`, `workspace_lost` and others).
 */
export function dial(link: Link, port: number): Duplex {
  return new Connection(link, checkWhole('port', port, 1, 65_535))
}

class Connection extends Duplex implements ActivityHandler {
  readonly #activity: Activity
  /** Bytes that the reader has not read yet; they are credited when it requests more. */
  #unread = 0

  constructor(link: Link, port: number) {
    super({ allowHalfOpen: true, emitClose: true, autoDestroy: true })
    this.#activity = link.open(this, { window: OUTPUT_WINDOW_BYTES, isBackground: true })
    this.#activity.send({ type: 'dial', port, window: OUTPUT_WINDOW_BYTES })
  }

  /** HTTP clients call these three methods of sockets; here they do nothing. */
  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  setTimeout(): this {
    return this
  }

  onFrame({ type }: { readonly type: string }): void {
    this.#notify(() => {
      if (type === 'dialed') this.emit('connect')
      else if (type === 'output_end') this.push(null)
    })
  }

  onOutput(_stream: ActivityStream, bytes: Buffer): void {
    this.#unread += bytes.length
    this.#notify(() => {
      if (this.push(bytes)) this.#creditAll()
    })
  }

  onEnd(end: ActivityEnd): void {
    if ('lost' in end) this.destroy(end.lost)
    else if (end.done.error !== null && !this.destroyed)
      this.destroy(failureOf('the connection failed', end.done.error))
    else if (!this.readableEnded) this.#notify(() => this.push(null))
  }

  override _read(): void {
    this.#creditAll()
  }

  override _write(bytes: Uint8Array, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    // Node reuses the buffer once the callback is called.
    void this.#send(bytes, done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#activity.endInput()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#activity.cancel()
    done(error)
  }

  async #send(bytes: Uint8Array, done: (error?: Error | null) => void): Promise<void> {
    const isSent = await this.#activity.write(bytes)
    done(isSent ? null : abortedError('the connection'))
  }

  /** Does what calls listeners of the user. What they throw ends this connection alone, and is uncaught as with a socket. */
  #notify(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.destroy(error as Error)
      process.nextTick(() => {
        throw error
      })
    }
  }

  #creditAll(): void {
    const bytes = this.#unread
    this.#unread = 0
    this.#activity.credit('socket', bytes)
  }
}
