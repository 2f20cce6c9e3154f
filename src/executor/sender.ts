import type { Channel } from '../sandbox/index.ts'
import { encodeFrame, FILE_CHUNK_BYTES, type LineInParts } from '../protocol/index.ts'
import type { StagedFile } from './input-files.ts'
import type { PreparedRun } from './prepare.ts'

/** Sends a run to the harness, one frame after the other, while other code reads. */
export class Sender {
  readonly #channel: Channel
  readonly #run: PreparedRun
  #stopped = false
  #begun = false
  #queue: Promise<void> = Promise.resolve()

  constructor(run: PreparedRun) {
    this.#run = run
    this.#channel = run.sandbox.channel
  }

  /** True once the `execute` frame is on its way, so that the harness knows the run. */
  get executeBegun(): boolean {
    return this.#begun
  }

  /** Files, then `execute`. Rejects when the peer is gone. */
  start(): Promise<void> {
    this.#queue = this.#sendAll()
    return this.#queue
  }

  /** Stops after the frame that is being sent. */
  stop(): void {
    this.#stopped = true
  }

  /** Asks the harness to end the run. */
  cancel(): Promise<void> {
    const frame = encodeFrame({ type: 'cancel', execution_id: this.#run.executionId })
    this.#queue = this.#queue.then(() => this.#channel.send(frame))
    return this.#queue
  }

  /** Sends the answer to a tool call, made into bytes when its turn comes. Rejects when the peer is gone. */
  answer(makeLine: () => Uint8Array): Promise<void> {
    this.#queue = this.#queue.then(() => (this.#stopped ? undefined : this.#channel.send(makeLine())))
    return this.#queue
  }

  /** Reports how long tools have executed, before any later answer. Rejects when the peer is gone. */
  toolTime(executedMs: number, executing: boolean): Promise<void> {
    const frame = {
      type: 'tool_time',
      execution_id: this.#run.executionId,
      executed_ms: executedMs,
      executing,
    } as const
    return this.answer(() => encodeFrame(frame))
  }

  /** Settles when no frame is being sent. */
  idle(): Promise<void> {
    return this.#queue
  }

  async #sendAll(): Promise<void> {
    for (const file of this.#run.files) {
      for (const frame of piecesOf(file, this.#run.executionId)) {
        if (this.#stopped) return
        await this.#channel.send(frame)
      }
    }
    if (this.#stopped) return
    this.#begun = true
    await sendRequest(this.#channel, this.#run.execute)
  }
}

/** A channel that other activities share: a large request goes in pieces, so that their frames can go between them. */
export interface SharedChannel extends Channel {
  sendRequest(request: LineInParts): Promise<void>
}

function sendRequest(channel: Channel | SharedChannel, request: LineInParts): Promise<void> {
  return 'sendRequest' in channel ? channel.sendRequest(request) : channel.send(request.line)
}

/** Encodes one piece at a time: all together would need the memory of the files again. */
function* piecesOf({ path, mode, content }: StagedFile, executionId: string): Generator<Uint8Array, void, void> {
  let offset = 0
  do {
    const piece = content.subarray(offset, offset + FILE_CHUNK_BYTES)
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
    yield encodeFrame({
      type: 'file_put',
      execution_id: executionId,
      path,
      mode,
      offset,
      content_base64: bytes.toString('base64'),
    })
    offset += piece.length
  } while (offset < content.length)
}
