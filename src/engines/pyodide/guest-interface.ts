import type { Readable } from 'node:stream'
import type { SandglassError } from '../../errors/index.ts'
import type { GuestMessage, HostMessage } from './guest/wire.ts'

/** A child process with one instance of Pyodide, as the host sees it. Its output is hostile. */
export interface GuestProcess {
  readonly pid: number | undefined
  /** The script's frames, stdout and stderr, as bytes. */
  readonly frames: Readable
  readonly stdout: Readable
  readonly stderr: Readable
  /** The messages of the guest itself, in order; the iteration ends with the process. */
  readonly control: AsyncIterableIterator<GuestMessage>
  /** Resolves when the process and all others in its bubblewrap have ended and their output was read. Never rejects. */
  readonly ended: Promise<ProcessEnd>
  /** Sends a message and the bytes that follow it. Drops them if the process has ended. */
  send(message: HostMessage, ...bytes: readonly Uint8Array[]): void
  /** Sends bytes to the script, preceded by their length. */
  sendToScript(body: Uint8Array): void
  /** The number of bytes that the process has not read yet. */
  readonly unsentBytes: number
  /** Resolves when the process has read what is unsent now, or can read nothing more. Never rejects. */
  awaitTaken(): Promise<void>
  /** Interrupts a cell of a session, by its number in this instance. `onNoted` is called when the instance knows of it. */
  interrupt(turn: number, onNoted: () => void): void
  kill(): void
  /** Kills the process and stops reading its output. */
  destroy(): void
  /** The output of Node itself on stderr, bounded. */
  lastOutput(): string
}

/** The end of a process. */
export interface ProcessEnd {
  readonly code: number | null
  readonly signal: string | null
  /** The reason if no process was started. */
  readonly notStarted?: SandglassError
}
