import { Buffer } from 'node:buffer'
import { readSync, writeSync } from 'node:fs'

/** Descriptors that the host gives to a guest. */
export const FDS: {
  readonly input: 0
  /** What the script's own process says: frames, one a line. */
  readonly frames: 3
  readonly stdout: 4
  readonly stderr: 5
  /** What the guest itself says. No descriptor of the script's leads here. */
  readonly control: 6
} = { input: 0, frames: 3, stdout: 4, stderr: 5, control: 6 }

/** Limits of a sandbox, in bytes. */
export interface GuestLimits {
  /** Of Python's memory and files together. */
  readonly memoryBytes: number
  /** Writable directories by path: how much each may hold. */
  readonly scratch: Readonly<Record<string, number>>
}

/** A file that is put below a read-only directory before anything runs. */
export interface GuestFile {
  readonly path: string
  /** Where its bytes are in what follows the message. */
  readonly start: number
  readonly end: number
}

/** The first message to a guest. The bytes of files, then of a snapshot that is in no file, follow it. */
export interface StartMessage {
  readonly type: 'start'
  readonly task: 'serve' | 'snapshot' | 'train'
  /** Directory of the npm package, with a slash at its end. */
  readonly pyodide: string
  readonly snapshot: { readonly path: string } | { readonly bytes: number } | null
  readonly files: readonly GuestFile[]
  readonly fileBytes: number
  readonly limits: GuestLimits
  readonly workspace: string
  readonly harness: string
  /** What Python is told: the harness's configuration for scripts that run in place. */
  readonly config: Readonly<Record<string, unknown>>
  /** SHA-256 of the WebAssembly modules that may be loaded: those of wheels. */
  readonly modules: readonly string[]
}

/** A piece of a file for the run to come. */
export interface PutMessage {
  readonly type: 'put'
  readonly path: string
  readonly mode: number
  readonly offset: number
  readonly contentBase64: string
}

/** Runs the script whose request, as Python reads it, follows: a length in four bytes and JSON. */
export interface RunMessage {
  readonly type: 'run'
  /** From now. */
  readonly deadlineMs: number
  readonly collect: readonly string[]
  readonly collectMs: number
  readonly memoryBytes?: number
}

/** What the host tells a guest. */
export type HostMessage = StartMessage | PutMessage | { readonly type: 'wipe' } | RunMessage

/** What a guest tells the host, one JSON object a line. */
export type GuestMessage =
  | { readonly type: 'ready'; readonly python: string; readonly loaded: unknown; readonly checks: GuestChecks }
  /** A snapshot, or the machine code of one: so many bytes on the way that is free for it. */
  | { readonly type: 'made'; readonly bytes: number }
  /** This Node gives no machine code away, and never will. */
  | { readonly type: 'no-machine-code'; readonly reason: string }
  | { readonly type: 'refused'; readonly path: string; readonly reason: string }
  | { readonly type: 'ended'; readonly exitCode: number | null; readonly fault: string | null }
  | {
      readonly type: 'file'
      readonly path: string
      readonly size: number
      readonly offset: number
      readonly contentBase64: string
    }
  | { readonly type: 'collected'; readonly limitsHit: readonly string[]; readonly skipped: readonly string[] }
  | { readonly type: 'out-of-memory' }

/** What a guest found around itself: name to value. */
export type GuestChecks = Readonly<Record<string, string | number | boolean | null>>

/** Reads one message; undefined at the end of the input. */
export function readMessage(): HostMessage | undefined {
  const head = readExactly(4)
  if (head === undefined) return undefined
  const body = readExactly(head.readUInt32LE(0))
  return body === undefined ? undefined : (JSON.parse(body.toString('utf8')) as HostMessage)
}

/** Reads so many bytes; undefined when the input ends before. */
export function readExactly(count: number): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(count)
  for (let at = 0; at < count;) {
    const got = readInput(bytes, at, count - at)
    if (got === 0) return undefined
    at += got
  }
  return bytes
}

/** Reads what is there, and waits for something. 0 at the end of the input. */
export function readInput(into: Uint8Array, offset: number, length: number): number {
  try {
    return readSync(FDS.input, into, offset, length, null)
  } catch (error) {
    if ((error as { code?: unknown }).code === 'EOF') return 0 // as Windows tells a closed pipe
    throw error
  }
}

/** Tells the host something. */
export function tell(message: GuestMessage): void {
  writeFully(FDS.control, Buffer.from(`${JSON.stringify(message)}\n`))
}

/** Writes all of it, and waits until it is taken. */
export function writeFully(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at, bytes.length - at)
}
