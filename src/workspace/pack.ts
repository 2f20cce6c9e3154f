import type { Activity } from './activity.ts'

/** The header before the bytes of a file. */
export interface PackHeader {
  readonly path: string
  readonly size: number
  readonly mode: number
  readonly mtimeMs: number
  /** The reason why the file cannot be read. Then no bytes follow. */
  readonly error: { readonly code: string; readonly message: string } | undefined
}

/** A part of a pack, in order. */
export type PackPart =
  | { readonly kind: 'header'; readonly header: PackHeader }
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'end' }
  /** The file changed, or could not be read to its end. */
  | { readonly kind: 'broken' }

const MAX_CHUNK_BYTES = 1024 * 1024
const MAX_HEADER_BYTES = 64 * 1024
const BROKEN = 0xff_ff_ff_ff
const LENGTH_BYTES = 4
/** Small writes are collected, so that not each is a frame of its own. */
const COLLECTED_BYTES = 256 * 1024

/** The error for bytes of the sandbox that are not a pack. */
export class PackError extends Error {
  override readonly name = 'PackError'
}

/** Writes the files of a pack into an activity. Each method resolves to false when the activity has ended. */
export class PackWriter {
  readonly #activity: Activity
  /** Reused once its bytes are sent. */
  readonly #collected: Buffer = Buffer.allocUnsafe(COLLECTED_BYTES)
  #size = 0

  constructor(activity: Activity) {
    this.#activity = activity
  }

  begin(path: string, mode: number): Promise<boolean> {
    return this.#header({ path, mode })
  }

  /** Writes a complete entry: a symbolic link. */
  async link(path: string, target: string): Promise<boolean> {
    return (await this.#header({ path, kind: 'link', target })) && this.end()
  }

  /** Writes a complete entry: a directory, which is made if it is missing, and gets the mode. */
  async directory(path: string, mode: number): Promise<boolean> {
    return (await this.#header({ path, kind: 'directory', mode })) && this.end()
  }

  #header(fields: object): Promise<boolean> {
    const header = Buffer.from(JSON.stringify(fields))
    return this.#put(Buffer.concat([lengthOf(header.length), header]))
  }

  async data(bytes: Uint8Array): Promise<boolean> {
    for (let at = 0; at < bytes.length; at += MAX_CHUNK_BYTES) {
      const chunk = bytes.subarray(at, at + MAX_CHUNK_BYTES)
      if (!((await this.#put(lengthOf(chunk.length))) && (await this.#put(chunk)))) return false
    }
    return true
  }

  end(): Promise<boolean> {
    return this.#put(lengthOf(0))
  }

  /** Sends the collected bytes. */
  async flush(): Promise<boolean> {
    if (this.#size === 0) return !this.#activity.isOver
    const isSent = await this.#activity.write(this.#collected.subarray(0, this.#size))
    this.#size = 0
    return isSent
  }

  async #put(bytes: Uint8Array): Promise<boolean> {
    for (let at = 0; at < bytes.length;) {
      const part = bytes.subarray(at, at + COLLECTED_BYTES - this.#size)
      this.#collected.set(part, this.#size)
      this.#size += part.length
      at += part.length
      if (this.#size === COLLECTED_BYTES && !(await this.flush())) return false
    }
    return !this.#activity.isOver
  }
}

type Expected = 'header-length' | 'header' | 'chunk-length' | 'chunk'

/** Reads a pack of a hostile peer, in pieces of any size. It keeps one header at most. */
export class PackReader {
  #expected: Expected = 'header-length'
  #needed = LENGTH_BYTES
  #held: Buffer = Buffer.alloc(0)

  /** True if the reader is between two files. */
  get isBetween(): boolean {
    return this.#expected === 'header-length' && this.#held.length === 0
  }

  /** @throws PackError */
  *push(given: Buffer): Generator<PackPart, void, void> {
    let bytes = given
    while (bytes.length > 0) {
      if (this.#expected === 'chunk') {
        const part = bytes.subarray(0, this.#needed)
        bytes = bytes.subarray(part.length)
        this.#needed -= part.length
        if (this.#needed === 0) this.#expect('chunk-length', LENGTH_BYTES)
        yield { kind: 'bytes', bytes: part }
        continue
      }
      const missing = this.#needed - this.#held.length
      this.#held = Buffer.concat([this.#held, bytes.subarray(0, missing)])
      bytes = bytes.subarray(missing)
      if (this.#held.length < this.#needed) return
      const part = this.#take(this.#held)
      if (part !== undefined) yield part
    }
  }

  #take(held: Buffer): PackPart | undefined {
    if (this.#expected === 'header') {
      const header = headerOf(held)
      if (header.error === undefined) this.#expect('chunk-length', LENGTH_BYTES)
      else this.#expect('header-length', LENGTH_BYTES)
      return { kind: 'header', header }
    }
    const length = held.readUInt32BE()
    if (this.#expected === 'header-length') {
      if (length === 0 || length > MAX_HEADER_BYTES) throw new PackError(`a header of ${length} bytes`)
      this.#expect('header', length)
      return undefined
    }
    if (length === 0 || length === BROKEN) {
      this.#expect('header-length', LENGTH_BYTES)
      return { kind: length === 0 ? 'end' : 'broken' }
    }
    if (length > MAX_CHUNK_BYTES) throw new PackError(`a chunk of ${length} bytes`)
    this.#expect('chunk', length)
    return undefined
  }

  #expect(expected: Expected, needed: number): void {
    this.#expected = expected
    this.#needed = needed
    this.#held = Buffer.alloc(0)
  }
}

function lengthOf(length: number): Buffer {
  const bytes = Buffer.allocUnsafe(LENGTH_BYTES)
  bytes.writeUInt32BE(length)
  return bytes
}

function headerOf(bytes: Buffer): PackHeader {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch {
    throw new PackError('a header that is not JSON')
  }
  const { path, size, mode, mtime_ms, error } = (value ?? {}) as Record<string, unknown>
  if (typeof path !== 'string') throw new PackError('a header without a path')
  const number = (given: unknown): number => (typeof given === 'number' && given >= 0 ? given : 0)
  return { path, size: number(size), mode: number(mode) & 0o777, mtimeMs: number(mtime_ms), error: errorOf(error) }
}

function errorOf(given: unknown): PackHeader['error'] {
  if (given === undefined || given === null) return undefined
  const { code, message } = given as Record<string, unknown>
  return { code: String(code), message: String(message) }
}
