import { MAX_FRAME_BYTES } from '../protocol/index.ts'
import type { Channel } from '../sandbox/index.ts'

/** An activity with bytes to send. */
export interface DataSource {
  /**
   * Returns the next piece: a complete frame of at most 64 KiB and its header; undefined if nothing may be sent now.
   * @param into a buffer that may hold the piece until it was sent.
   */
  nextPiece(into: Buffer): Uint8Array | undefined
}

/**
 * The only writer of a channel. Control frames go first, so that a cancellation waits behind one piece of data at most; the
 * activities with data take turns.
 */
export class Outbound {
  readonly #channel: Channel
  readonly #onBroken: (error: unknown) => void
  #control: { readonly bytes: Uint8Array; readonly sent: () => void; readonly failed: (error: unknown) => void }[] = []
  readonly #sources = new Set<DataSource>()
  /** The piece that is being sent: one at a time. */
  #piece: Buffer | undefined
  #isPumping = false
  #failure: { readonly error: Error } | undefined

  constructor(channel: Channel, onBroken: (error: unknown) => void) {
    this.#channel = channel
    this.#onBroken = onBroken
  }

  /** Sends one frame ahead of all data. Rejects when the peer is gone. */
  send(bytes: Uint8Array): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error)
    const { promise, resolve: sent, reject: failed } = Promise.withResolvers<void>()
    this.#control.push({ bytes, sent, failed })
    this.#wake()
    return promise
  }

  /** Adds a source that has something to send, or may send again. */
  ready(source: DataSource): void {
    this.#sources.add(source)
    this.#wake()
  }

  /** Stops sending, because the peer is gone. */
  stop(error: unknown): void {
    this.#failure ??= { error: error instanceof Error ? error : new Error(String(error)) }
    const waiting = this.#control
    this.#control = []
    this.#sources.clear()
    for (const { failed } of waiting) failed(error)
  }

  #wake(): void {
    if (this.#isPumping) return
    this.#isPumping = true
    void this.#pump()
  }

  async #pump(): Promise<void> {
    try {
      while (this.#failure === undefined) {
        const control = this.#control.shift()
        if (control !== undefined) {
          await this.#channel.send(control.bytes).catch((error: unknown) => {
            control.failed(error)
            throw error
          })
          control.sent()
          continue
        }
        const [source] = this.#sources
        if (source === undefined) break
        // Moves the source to the end of the queue, behind the other activities.
        this.#sources.delete(source)
        this.#piece ??= Buffer.allocUnsafeSlow(MAX_FRAME_BYTES)
        const piece = source.nextPiece(this.#piece)
        if (piece === undefined) continue
        await this.#channel.send(piece)
        this.#sources.add(source)
      }
    } catch (error) {
      this.stop(error)
      this.#onBroken(error)
    } finally {
      this.#isPumping = false
    }
  }
}
