import { isUint8Array } from 'node:util/types'
import type { Channel } from '../sandbox/index.ts'
import { messageOf, SandglassError } from '../errors/index.ts'
import { encodeFrame, FILE_CHUNK_BYTES, FilePutEncoder, type LineInParts } from '../protocol/index.ts'
import { formatValue, piecesUntil } from '../support/index.ts'
import { invalid } from './invalid.ts'
import { openFile, type StagedFile } from './input-files.ts'
import type { PreparedRun } from './prepare.ts'

/** Minimum rate at which a peer receives files, in bytes per millisecond. */
const MIN_BYTES_PER_MS = 1024

/** Sends a run to the harness, one frame after the other, while other code reads. */
export class Sender {
  readonly #channel: Channel
  readonly #run: PreparedRun
  readonly #encoder = new FilePutEncoder()
  #stopped = false
  #begun = false
  /** See {@link beginsAt}. */
  #beginsAt = performance.now()
  /** The path of the file whose source is being waited for. */
  #awaited: string | undefined
  readonly #over = Promise.withResolvers<void>()
  #queue: Promise<void> = Promise.resolve()

  constructor(run: PreparedRun) {
    this.#run = run
    this.#channel = run.sandbox.channel
  }

  /** True once the `execute` frame is on its way, so that the harness knows the run. */
  get executeBegun(): boolean {
    return this.#begun
  }

  /**
   * The value of `performance.now()` at which the run's timeout begins: the start, plus the time spent waiting for sources of files,
   * plus the time that a slow peer may need for the bytes sent.
   */
  get beginsAt(): number {
    return this.#beginsAt
  }

  /** The path of the file whose source is being waited for, if any. */
  get awaited(): string | undefined {
    return this.#awaited
  }

  /** Sends the files, then `execute`. Rejects if the channel is closed, and with a {@link SourceError}. */
  start(): Promise<void> {
    this.#queue = this.#sendAll()
    return this.#queue
  }

  /** Stops after the frame that is being sent. A source that stalls is abandoned. */
  stop(): void {
    this.#stopped = true
    this.#over.resolve()
  }

  /** Asks the harness to end the run. */
  cancel(): Promise<void> {
    const frame = encodeFrame({ type: 'cancel', execution_id: this.#run.executionId })
    this.#queue = this.#queue.then(() => this.#channel.send(frame))
    return this.#queue
  }

  /** Sends the answer to a tool call, which is encoded when its turn comes. Rejects if the channel is closed. */
  answer(makeLine: () => Uint8Array): Promise<void> {
    this.#queue = this.#queue.then(() => (this.#stopped ? undefined : this.#channel.send(makeLine())))
    return this.#queue
  }

  /** Reports the time of tools and approvals so far, and whether it goes on, before any later answer. Rejects if the channel is closed. */
  toolTime(movedMs: number, moving: boolean): Promise<void> {
    const frame = {
      type: 'tool_time',
      execution_id: this.#run.executionId,
      executed_ms: movedMs,
      executing: moving,
    } as const
    return this.answer(() => encodeFrame(frame))
  }

  /** Settles when all queued frames are sent. */
  drain(): Promise<void> {
    return this.#queue
  }

  /** Encodes one piece at a time, because the encoded file would need as much memory again. */
  async #sendFile(file: StagedFile): Promise<void> {
    const { path, mode } = file
    const { executionId: execution_id } = this.#run
    let offset = 0
    this.#awaited = path
    let askedAt = performance.now()
    for await (const chunk of this.#read(file)) {
      this.#awaited = undefined
      this.#beginsAt += performance.now() - askedAt
      if (this.#stopped) return
      await this.#channel.send(this.#encoder.encode({ execution_id, path, mode, offset }, chunk)) // written when this resolves
      offset += chunk.length
      this.#awaited = path
      askedAt = performance.now()
      this.#beginsAt = Math.min(askedAt, this.#beginsAt + chunk.length / MIN_BYTES_PER_MS)
    }
    this.#awaited = undefined
  }

  /** @throws SourceError */
  async *#read(file: StagedFile): AsyncGenerator<Uint8Array, void, void> {
    const source = openFile(file)
    try {
      yield* chunksOf(Symbol.asyncIterator in source ? piecesUntil(source, this.#over.promise) : source)
    } catch (error) {
      if (error instanceof SandglassError) throw new SourceError(error)
      throw new SourceError(invalid(`files[${formatValue(file.path)}]`, `its source failed: ${messageOf(error)}`))
    }
  }

  async #sendAll(): Promise<void> {
    for (const file of this.#run.files) await this.#sendFile(file)
    if (this.#stopped) return
    this.#begun = true
    const sending = sendRequest(this.#channel, this.#run.execute)
    this.#run.cell?.onSent()
    await sending
  }
}

/** A file could not be read to its end: the run cannot begin. */
export class SourceError extends Error {
  override readonly name = 'SourceError'
  override readonly cause: SandglassError

  constructor(cause: SandglassError) {
    super(cause.message)
    this.cause = cause
  }
}

/** A channel that several activities share: a large request is sent in pieces, so that other frames can go between them. */
export interface SharedChannel extends Channel {
  sendRequest(request: LineInParts): Promise<void>
}

function sendRequest(channel: Channel | SharedChannel, request: LineInParts): Promise<void> {
  return 'sendRequest' in channel ? channel.sendRequest(request) : channel.send(request.line)
}

/** Yields the content of a source in chunks of {@link FILE_CHUNK_BYTES}; only the last may be shorter. An empty file yields one empty chunk. */
async function* chunksOf(
  source: AsyncIterable<Uint8Array | string> | readonly Uint8Array[],
): AsyncGenerator<Uint8Array, void, void> {
  const chunk = Buffer.allocUnsafeSlow(FILE_CHUNK_BYTES)
  let used = 0
  let isEmpty = true
  for await (const piece of source) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
    if (!isUint8Array(bytes)) throw new TypeError(`${formatValue(piece)} is neither bytes nor text`)
    for (let at = 0; at < bytes.length;) {
      const part = bytes.subarray(at, at + FILE_CHUNK_BYTES - used)
      chunk.set(part, used)
      at += part.length
      used += part.length
      if (used < FILE_CHUNK_BYTES) continue
      yield chunk
      used = 0
      isEmpty = false
    }
  }
  if (used > 0 || isEmpty) yield chunk.subarray(0, used)
}
