import type { Readable } from 'node:stream'
import type { SandglassError } from '../../errors/index.ts'
import type { GuestMessage, HostMessage } from './guest/wire.ts'

/** A child process with one instance of Pyodide in it, seen from the host. What comes from it is hostile. */
export interface GuestProcess {
  readonly pid: number | undefined
  /** The script's frames, stdout and stderr: bytes. */
  readonly frames: Readable
  readonly stdout: Readable
  readonly stderr: Readable
  /** The guest's own words, in order; the iteration ends with the process. */
  readonly control: AsyncIterableIterator<GuestMessage>
  /** Settles when the process is gone, with all that its box held, and all that it wrote was read. Never rejects. */
  readonly ended: Promise<ProcessEnd>
  /** Sends a message, and bytes behind it. What is not taken any more is dropped. */
  send(message: HostMessage, ...bytes: readonly Uint8Array[]): void
  /** Sends bytes for the script's own process, with their length before them. */
  sendToScript(body: Uint8Array): void
  /** Bytes that it did not take yet. */
  readonly unsentBytes: number
  /** Called whenever it has taken everything. */
  onTaken(listener: () => void): void
  kill(): void
  /** Kills it, and reads nothing more. */
  destroy(): void
  /** What the process printed beside all that, bounded. */
  lastWords(): string
}

/** How a process ended. */
export interface ProcessEnd {
  readonly code: number | null
  readonly signal: string | null
  /** Why there was no process at all. */
  readonly notStarted?: SandglassError
}
