import { createHash } from 'node:crypto'
import { CAPS, type HarnessFrame } from '../protocol/index.ts'
import { ChannelViolation } from './conversation-end.ts'
import { pathProblem } from './paths.ts'
import type { Redactor, SecretSearch } from '../redaction/index.ts'
import type { CollectedFile } from './result.ts'

type FileFrame = Extract<HarnessFrame, { type: 'file' }>

/** Each directory, and the file itself, adds a name of at most 255 bytes and a `/`. */
const MAX_PATH_BYTES = (CAPS.fileDepth + 1) * 256
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/** An incomplete file. All its bytes are reserved at the beginning: pieces of one byte would take a hundred times the memory. */
interface Begun {
  readonly path: string
  readonly content: Uint8Array<ArrayBuffer>
  readonly search: SecretSearch
  received: number
}

/** The bounds of the collection of a run. */
export type CollectCaps = Pick<typeof CAPS, 'files' | 'fileBytes' | 'totalBytes'>

/** A complete file, and whether it contains the value of a secret. */
interface Complete {
  readonly file: CollectedFile
  readonly holdsSecret: boolean
}

/** Assembles collected files from their pieces. The harness never exceeds the caps; a peer that does is not trusted. */
export class CollectedFiles {
  readonly #redactor: Redactor
  readonly #files = new Map<string, Complete>()
  #current: Begun | undefined
  #total = 0
  #wireBytes = 0
  readonly #caps: CollectCaps
  /** `file` frames are not counted as output; this bounds what they may cost, empty or tiny ones included. */
  readonly #maxWireBytes: number

  constructor(redactor: Redactor, caps: CollectCaps) {
    this.#redactor = redactor
    this.#caps = caps
    // Within the default limits, even the frames of small files fit into twice the bytes.
    this.#maxWireBytes =
      2 * Math.max(caps.totalBytes, CAPS.totalBytes) + Math.max(0, caps.files - CAPS.files) * MAX_PATH_BYTES
  }

  /**
   * @param wireBytes length of the line that carried the frame.
   * @returns the file, if this frame completes it.
   * @throws ChannelViolation
   */
  take(frame: FileFrame, wireBytes: number): CollectedFile | undefined {
    this.#wireBytes += wireBytes
    if (this.#wireBytes > this.#maxWireBytes)
      throw new ChannelViolation(`it sent more than ${this.#maxWireBytes} bytes for its files`)
    const file = this.#current ?? this.#begin(frame)
    const size = file.content.length
    const bytes = bytesIn(frame.content_base64)
    if (frame.path !== file.path || frame.size !== size || frame.offset !== file.received) {
      throw new ChannelViolation('it sent the pieces of a file out of order')
    }
    if (bytes > size - file.received) throw new ChannelViolation('it sent a file longer than announced')
    if (bytes === 0 && size > 0) throw new ChannelViolation('it sent an empty piece of a file')
    // Decoded in place: a buffer for each piece would produce garbage of the size of all files.
    const piece = Buffer.from(file.content.buffer, file.received, bytes)
    piece.write(frame.content_base64, 'base64')
    file.search.push(piece)
    file.received += bytes
    return file.received === size ? this.#finish(file) : undefined
  }

  /** The path of a file that was begun and not finished. */
  get unfinished(): string | undefined {
    return this.#current?.path
  }

  /** The complete files, in order of arrival. */
  get complete(): Complete[] {
    return [...this.#files.values()]
  }

  #begin({ path, size }: FileFrame): Begun {
    const problem = pathProblem(path, MAX_PATH_BYTES)
    if (problem !== undefined) throw new ChannelViolation(`it sent a file with an invalid path: ${problem}`)
    if (this.#files.has(path)) throw new ChannelViolation('it sent a file twice')
    const { files, fileBytes, totalBytes } = this.#caps
    if (this.#files.size >= files) throw new ChannelViolation(`it sent more than ${files} files`)
    if (size > fileBytes) throw new ChannelViolation(`it sent a file of more than ${fileBytes} bytes`)
    this.#total += size
    if (this.#total > totalBytes) throw new ChannelViolation(`it sent files of more than ${totalBytes} bytes`)
    this.#current = { path, content: new Uint8Array(size), search: this.#redactor.search(), received: 0 }
    return this.#current
  }

  #finish({ path, content, search }: Begun): CollectedFile {
    const sha256 = createHash('sha256').update(content).digest('hex')
    const file = { path, size: content.length, sha256, content }
    this.#files.set(path, { file, holdsSecret: search.finish() })
    this.#current = undefined
    return file
  }
}

/**
 * The number of bytes in a text of base64. Buffers skip invalid base64 without an error.
 * @throws ChannelViolation
 */
function bytesIn(text: string): number {
  if (text.length % 4 !== 0 || !BASE64.test(text)) throw new ChannelViolation('it sent a piece that is not base64')
  return Buffer.byteLength(text, 'base64')
}
