import { createHash } from 'node:crypto'
import { CAPS, type HarnessFrame } from '../protocol/index.ts'
import { ChannelViolation } from './conversation-end.ts'
import { pathProblem } from './paths.ts'
import type { CollectedFile } from './result.ts'

type FileFrame = Extract<HarnessFrame, { type: 'file' }>

/** Each directory and the file itself, a name of at most 255 bytes and a `/` each. */
const MAX_PATH_BYTES = (CAPS.fileDepth + 1) * 256
/** `file` frames are not counted as output; this bounds what they may cost, empty or tiny ones included. */
const MAX_WIRE_BYTES = 2 * CAPS.totalBytes
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/** Puts the pieces of collected files together. A peer that exceeds the caps is not our harness. */
export class CollectedFiles {
  readonly #files = new Map<string, CollectedFile>()
  #current: { path: string; size: number; received: number; parts: Buffer[] } | undefined
  #total = 0
  #wireBytes = 0

  /**
   * @param wireBytes length of the line that carried the frame.
   * @returns the file, if this was its last piece.
   * @throws ChannelViolation
   */
  take(frame: FileFrame, wireBytes: number): CollectedFile | undefined {
    this.#wireBytes += wireBytes
    if (this.#wireBytes > MAX_WIRE_BYTES) throw new ChannelViolation('it sent too much for its files')
    const file = this.#current ?? this.#begin(frame)
    const content = decodeBase64(frame.content_base64)
    if (frame.path !== file.path || frame.size !== file.size || frame.offset !== file.received) {
      throw new ChannelViolation('it sent the pieces of a file out of order')
    }
    if (content.length > file.size - file.received) throw new ChannelViolation('it sent a file longer than announced')
    if (content.length === 0 && file.size > 0) throw new ChannelViolation('it sent an empty piece of a file')
    file.parts.push(content)
    file.received += content.length
    return file.received === file.size ? this.#finish(file) : undefined
  }

  /** The path of a file that was begun and not finished. */
  get unfinished(): string | undefined {
    return this.#current?.path
  }

  /** The complete files, in order of arrival. */
  get complete(): CollectedFile[] {
    return [...this.#files.values()]
  }

  #begin({ path, size }: FileFrame): { path: string; size: number; received: number; parts: Buffer[] } {
    const problem = pathProblem(path, MAX_PATH_BYTES)
    if (problem !== undefined) throw new ChannelViolation(`it sent a file whose path cannot be: ${problem}`)
    if (this.#files.has(path)) throw new ChannelViolation('it sent a file twice')
    if (this.#files.size >= CAPS.files) throw new ChannelViolation(`it sent more than ${CAPS.files} files`)
    if (size > CAPS.fileBytes) throw new ChannelViolation(`it sent a file of more than ${CAPS.fileBytes} bytes`)
    this.#total += size
    if (this.#total > CAPS.totalBytes) throw new ChannelViolation(`it sent files of more than ${CAPS.totalBytes} bytes`)
    this.#current = { path, size, received: 0, parts: [] }
    return this.#current
  }

  #finish({ path, size, parts }: { path: string; size: number; parts: Buffer[] }): CollectedFile {
    const content = Buffer.concat(parts, size)
    const sha256 = createHash('sha256').update(content).digest('hex')
    const file = { path, size, sha256, content: new Uint8Array(content.buffer, content.byteOffset, size) }
    this.#files.set(path, file)
    this.#current = undefined
    return file
  }
}

/** `Buffer.from` skips invalid base64 without an error. */
function decodeBase64(text: string): Buffer {
  if (text.length % 4 !== 0 || !BASE64.test(text)) throw new ChannelViolation('it sent a piece that is not base64')
  return Buffer.from(text, 'base64')
}
