import type { GuestProcess } from './guest-interface.ts'

/** Takes the output of one script, cell or other request. */
export interface OutputTaker {
  takeFrames(chunk: Uint8Array): void
  readonly streams: readonly [stdout: OutputStream, stderr: OutputStream]
}

interface OutputStream {
  take(chunk: Uint8Array): void
  end(): void
}

/** The output of an instance: frames, stdout, stderr. One script or cell at a time takes it. */
export class GuestOutput {
  /** Resolves when all of it is closed. */
  readonly closed: Promise<void>
  readonly #guest: GuestProcess
  readonly #read = [0, 0, 0]
  /** The numbers of bytes that must be read before the current cell ends. */
  #awaited: { readonly counts: readonly number[]; readonly resolve: () => void } | undefined
  #taker: OutputTaker | undefined
  #onTaken = (): void => undefined

  constructor(guest: GuestProcess) {
    this.#guest = guest
    const closed = [guest.frames, guest.stdout, guest.stderr].map((stream, index) => {
      stream.on('data', (chunk: Uint8Array) => this.#take(index, chunk))
      const { promise, resolve } = Promise.withResolvers<void>()
      stream.once('close', resolve)
      return promise
    })
    this.closed = Promise.all(closed).then(() => undefined)
  }

  /** Passes all further output to this taker. @param onTaken called after each chunk. */
  begin(taker: OutputTaker, onTaken: () => void = () => undefined): void {
    this.#read.fill(0)
    this.#taker = taker
    this.#onTaken = onTaken
  }

  /** Ends the output of the current taker when these counts of bytes have been read since `begin`, or all streams are closed. */
  async reach(counts: readonly number[]): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#awaited = { counts, resolve }
    this.#checkReached()
    await Promise.race([promise, this.closed])
    this.#awaited = undefined
    this.end()
  }

  /** Ends the output of the current taker. */
  end(): void {
    for (const stream of this.#taker?.streams ?? []) stream.end()
    this.#taker = undefined
  }

  /** Stops reading the output of an instance that ran nothing. */
  leave(): void {
    for (const stream of [this.#guest.frames, this.#guest.stdout, this.#guest.stderr]) stream.removeAllListeners('data')
  }

  #take(index: number, chunk: Uint8Array): void {
    this.#read[index] = (this.#read[index] ?? 0) + chunk.length
    // Between two cells no code runs that could write: such output is dropped.
    if (index === 0) this.#taker?.takeFrames(chunk)
    else this.#taker?.streams[index - 1]?.take(chunk)
    this.#onTaken()
    this.#checkReached()
  }

  #checkReached(): void {
    const { counts, resolve } = this.#awaited ?? {}
    if (counts?.every((count, index) => (this.#read[index] ?? 0) >= count) === true) resolve?.()
  }
}

/** Returns the counts in a message of a guest, which is hostile; undefined if they are invalid. */
export function countsOf(counts: unknown): readonly number[] | undefined {
  const isSound = Array.isArray(counts) && counts.length === 3 && counts.every((each) => Number.isSafeInteger(each))
  return isSound ? (counts as number[]) : undefined
}
