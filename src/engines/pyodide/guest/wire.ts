import { Buffer } from 'node:buffer'
import { readSync, writeSync } from 'node:fs'
import type { Caps } from '../../../protocol/index.ts'

/** Descriptors that the host gives to a guest. */
export const FDS: {
  readonly input: 0
  /** The frames of the script, one per line. */
  readonly frames: 3
  readonly stdout: 4
  readonly stderr: 5
  /** The messages of the guest itself. The script has no descriptor for it. */
  readonly control: 6
  /** Interrupts of cells, in both directions; a thread of its own reads them. The script has no descriptor for it. */
  readonly interrupts: 7
} = { input: 0, frames: 3, stdout: 4, stderr: 5, control: 6, interrupts: 7 }

/** Limits of a sandbox, in bytes. */
export interface GuestLimits {
  /** Limit of Python's memory and files together. */
  readonly memoryBytes: number
  /** Sizes of the writable directories, by path. */
  readonly scratch: Readonly<Record<string, number>>
}

/** A file that is written below a read-only directory before the script runs. */
export interface GuestFile {
  readonly path: string
  /** The range of its content in the bytes that follow the message. */
  readonly start: number
  readonly end: number
}

/** The first message to a guest. The content of files follows it, then the bytes of a snapshot that is in no file. */
export interface StartMessage {
  readonly type: 'start'
  readonly task: 'serve' | 'snapshot'
  /** The directory of the npm package, with a slash at its end. */
  readonly pyodide: string
  readonly snapshot: { readonly path: string } | { readonly bytes: number } | null
  readonly files: readonly GuestFile[]
  readonly fileBytes: number
  readonly limits: GuestLimits
  readonly workspace: string
  readonly harness: string
  /** The configuration of the harness for scripts that run in place. */
  readonly config: Readonly<Record<string, unknown>>
  /** SHA-256 digests of the WebAssembly modules that may be loaded: those of wheels. */
  readonly modules: readonly string[]
}

/** A chunk of a file for the next run. */
export interface PutMessage {
  readonly type: 'put'
  readonly path: string
  readonly mode: number
  readonly offset: number
  readonly contentBase64: string
}

/** The files to collect from a run. The caps are the host's: a guest can import nothing from outside its directory. */
export interface CollectOrder {
  readonly globs: readonly string[]
  readonly maxMs: number
  readonly caps: Pick<
    Caps,
    'files' | 'fileBytes' | 'totalBytes' | 'fileDepth' | 'entries' | 'fileChunkBytes' | 'warnings'
  >
}

/** Runs a script. The request follows, as Python reads it: a length in four bytes, and JSON. */
export interface RunMessage {
  readonly type: 'run'
  /** Relative to the arrival of the message. */
  readonly deadlineMs: number
  /** The time that the script may wait for answers of tools without using up its own time. */
  readonly maxWaitMs: number
  /** From the deadline to the kill. */
  readonly graceMs: number
  readonly collect: CollectOrder
  readonly memoryBytes?: number
  /** True if the files of the workspace are sent back to the host after the script. */
  readonly keep?: boolean
}

/** Runs a cell of a session, or lists its variables. The request follows, as that of a run. */
export interface TurnMessage extends Omit<RunMessage, 'type'> {
  readonly type: 'cell' | 'look'
  /** Its number in this instance, from 1: an interrupt names it. */
  readonly turn: number
}

/**
 * A directory (`d`), file (`f`) or link (`l`) of a workspace, on its way into an instance or out of it. `parent` is the index of
 * its directory among the entries, -1 for the workspace itself; the content of files follows the entries, in their order.
 */
export interface CarriedEntry {
  readonly parent: number
  readonly name: string
  readonly kind: 'd' | 'f' | 'l'
  readonly mode: number
  readonly mtimeMs: number
  /** Of a file. */
  readonly size?: number
  /** Of a link. */
  readonly target?: string
  /** Of a file whose content the other side has: its index when the files went the other way. No content follows. */
  readonly from?: number
}

/** The files of a workspace, before a run. The content of all files follows. */
export interface RestoreMessage {
  readonly type: 'restore'
  readonly entries: readonly CarriedEntry[]
}

/** The files of a workspace, before a cell: all others are removed. The content of those that are new follows. */
export interface SyncMessage {
  readonly type: 'sync'
  readonly entries: readonly CarriedEntry[]
}

/** A message from the host to a guest. With `session`, the instance is that of one session, and serves its cells. */
export type HostMessage =
  | StartMessage
  | PutMessage
  | { readonly type: 'wipe' }
  | { readonly type: 'session' }
  | RestoreMessage
  | SyncMessage
  | RunMessage
  | TurnMessage

/** A message from a guest to the host, one JSON object per line. */
export type GuestMessage =
  | { readonly type: 'ready'; readonly python: string; readonly loaded: unknown; readonly checks: GuestChecks }
  /** The size of the snapshot that follows on the descriptor of frames. */
  | { readonly type: 'snapshot'; readonly bytes: number }
  | { readonly type: 'refused'; readonly path: string; readonly reason: string }
  /** The files of a `restore` are there. */
  | { readonly type: 'restored' }
  /** The files of the workspace after the run: entries, then pieces of content (payloads), then `kept`. */
  | { readonly type: 'entries'; readonly entries: readonly CarriedEntry[] }
  | { readonly type: 'content'; readonly payload?: Uint8Array }
  | { readonly type: 'kept' }
  | {
      readonly type: 'ended'
      readonly exitCode: number | null
      readonly fault: string | null
      /** Of a cell: true if the interpreter can run another one. */
      readonly lives?: boolean
      /** Of a cell: the bytes that it wrote, as frames, on stdout and on stderr. */
      readonly written?: readonly number[]
    }
  | {
      readonly type: 'file'
      readonly path: string
      readonly size: number
      readonly offset: number
      readonly contentBase64: string
    }
  | { readonly type: 'collected'; readonly limitsHit: readonly string[]; readonly skipped: readonly string[] }
  | { readonly type: 'out-of-memory' }
  /** Sent by the watchdog: the deadline is over, and the process ends. */
  | { readonly type: 'past-deadline' }

/** The facts that a guest found about its surroundings: name to value. */
export type GuestChecks = Readonly<Record<string, string | number | boolean | null>>

/** The head of messages that a cell may leave unread: answers of tools. */
const OF_CELLS = Buffer.from('{"type":"tool_result"')

/** Reads one message; undefined at the end of the input. Skips messages for a cell, and empty ones, which only wake a cell. */
export function readMessage(): HostMessage | undefined {
  for (;;) {
    const head = readExactly(4)
    const body = head === undefined ? undefined : readExactly(head.readUInt32LE(0))
    if (body === undefined) return undefined
    if (body.length > 0 && !body.subarray(0, OF_CELLS.length).equals(OF_CELLS))
      return JSON.parse(body.toString('utf8')) as HostMessage
  }
}

/** Reads exactly this many bytes; undefined if the input ends before. */
export function readExactly(count: number): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(count)
  return readFully(bytes) ? bytes : undefined
}

/** Fills an array from the input; false if the input ends before. */
export function readFully(into: Uint8Array): boolean {
  for (let at = 0; at < into.length;) {
    const got = readInput(into, at, into.length - at)
    if (got === 0) return false
    at += got
  }
  return true
}

/** Waits for input and reads what is available. Returns 0 at the end of the input. */
export function readInput(into: Uint8Array, offset: number, length: number): number {
  try {
    return readSync(FDS.input, into, offset, length, null)
  } catch (error) {
    if ((error as { code?: unknown }).code === 'EOF') return 0 // Windows reports a closed pipe this way
    throw error
  }
}

/** Sends the host a message. */
export function send(message: GuestMessage): void {
  writeFully(FDS.control, Buffer.from(`${JSON.stringify(message)}\n`))
}

/** Sends the host a message followed by raw bytes, at most {@link PAYLOAD_BYTES}. */
export function sendWithPayload(message: GuestMessage, bytes: Uint8Array): void {
  const head = Buffer.from(`{"payload":${bytes.length},${JSON.stringify(message).slice(1)}\n`)
  writeFully(FDS.control, Buffer.concat([head, bytes]))
}

/** Maximum number of bytes after one message. */
export const PAYLOAD_BYTES: number = 64 * 1024

/** Writes all bytes and waits until they are read. */
export function writeFully(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at, bytes.length - at)
}
