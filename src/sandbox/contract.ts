import type { ReadyFrame } from '../protocol/index.ts'
import type { SandboxLimits } from './limits.ts'

/**
 * How strong the wall of an engine is, strongest first. Told from probes, never from configuration.
 */
export type IsolationLevel = 'vm' | 'gvisor' | 'container' | 'os-sandbox' | 'language-only' | 'none'

/**
 * What scripts reach of the network. `language-only`: nothing that a script can name leads there, and nothing of the
 * operating system would stop one that gets out of its language.
 */
export type NetworkAccess = 'none' | 'language-only' | 'open'

/** A limit that an engine can really hold a script to. */
export type EnforcedLimit = 'memory' | 'pids' | 'cpu' | 'disk' | 'output' | 'wall'

/** What sandboxes of one kind have in common; equal specs share a pool. */
export interface SandboxSpec {
  readonly limits: SandboxLimits
  /** Absolute directory whose modules scripts can import (read-only in the sandbox). */
  readonly packages?: string
  /** Absolute directory of `*.py` files that are loaded into every script's globals. */
  readonly toolsDir?: string
  /** Modules that are imported once per sandbox, before any script. */
  readonly preload?: readonly string[]
  /** Whether its sandboxes are there to check scripts, not to run them: what a check needs is then loaded ahead. */
  readonly checker?: boolean
}

/** One way of making sandboxes. An engine never reads frames beyond the harness's `ready`. */
export interface SandboxEngine {
  readonly name: string
  /** What is in force on this machine, from probes run with the production flags. Never throws for a missing part. */
  report(options?: { signal?: AbortSignal }): Promise<SandboxReport>
  /**
   * Starts a harness somewhere isolated; resolves when it said `ready`.
   * @throws SandglassError with a code that names what is missing and the remedy.
   */
  create(spec: SandboxSpec, options?: CreateOptions): Promise<Sandbox>
  /** Gives back what the engine itself holds. Sandboxes are not ended by it. */
  close(): Promise<void>
}

/** How a sandbox is to be started. */
export interface CreateOptions {
  readonly signal?: AbortSignal
  /** Nobody waits for it: leave the processor to running scripts where the engine can. */
  readonly background?: boolean
}

/** One isolated box with a running harness in it. */
export interface Sandbox extends AsyncDisposable {
  readonly id: string
  readonly info: SandboxInfo
  readonly channel: Channel
  /** What the harness said when it was ready. */
  readonly ready: ReadyFrame
  /** Settles once, when nothing of the sandbox runs any more. Never rejects. */
  readonly closed: Promise<Ending>
  /**
   * Processes of this sandbox that the kernel killed for memory so far, as the host sees it; null when nothing counts them.
   * An engine whose harness counts them (`memory_kills` of `script_done`) may say 0.
   */
  memoryKills(): number | null
  /**
   * Lets everything in it have as much of the processor as there is, until what this returns is disposed of: a run that
   * must end now, by its deadline or by a cancellation, then does not wait for the script's share. Where that cannot be
   * done, the limit stays in force. Disposing rejects when the limit could not be put back: such a sandbox must not serve
   * again. Absent where the harness does not share the script's limit.
   */
  liftCpuLimit?(): AsyncDisposable
  /**
   * Resolves when it can begin a run at once, or is over. Never rejects. Absent where it always can: an engine that makes
   * something ready for each run has it, so that the time for that is none of the run's.
   */
  recovered?(): Promise<void>
  /** Ends everything in it at once and frees what it held; idempotent; resolves when that is done. */
  destroy(): Promise<void>
}

/** What is in force in one sandbox, stamped on each result. */
export interface SandboxInfo {
  readonly engine: string
  readonly level: IsolationLevel
  /** Version of the Python inside, for example `3.11.2`. */
  readonly python: string
  readonly network: NetworkAccess
  readonly limitsEnforced: readonly EnforcedLimit[]
  /** For limits that are not enforced: why, what to do, and what holds in their place. For messages. */
  readonly limitsMissing?: Readonly<Partial<Record<EnforcedLimit, string>>>
  readonly limits: SandboxLimits
}

/** Ordered duplex of bytes between host and harness. One reader at a time. */
export interface Channel {
  /** The next chunk, or null at the end. Nothing is read ahead of demand beyond one chunk: that is the back-pressure. */
  receive(): Promise<Uint8Array | null>
  /** Resolves when the bytes were handed over; rejects when the peer is gone. */
  send(bytes: Uint8Array): Promise<void>
  /** Ends both directions. Idempotent. */
  close(): void
}

/** How a sandbox, or a run in it, came to its end. */
export interface Ending {
  readonly cause: EndingCause
  readonly exitCode: number | null
  readonly signal: string | null
  /** Who brought the end about. */
  readonly by: 'script' | 'harness' | 'host' | 'kernel' | 'unknown'
  /** Last words of the sandbox's machinery (its stderr), bounded; empty when there were none. */
  readonly message?: string
}

/** The first cause of an ending. */
export type EndingCause =
  | 'exit'
  | 'signal'
  | 'timeout'
  | 'output-limit'
  | 'memory-limit'
  | 'cancelled'
  | 'destroyed'
  | 'channel-closed'
  | 'not-started'

/** Result of the probes of one engine on this machine. */
export interface SandboxReport {
  readonly engine: string
  readonly usable: boolean
  readonly level: IsolationLevel
  /** Why it is not usable, or not fully; each with a remedy. */
  readonly reasons: readonly ReportReason[]
  readonly limitsEnforced: readonly EnforcedLimit[]
  readonly network: NetworkAccess
  readonly capabilities: SandboxCapabilities
  /** Facts found by probing: name to value, for people and for `doctor`. */
  readonly probes: Readonly<Record<string, string | number | boolean | null | readonly string[]>>
}

/** Something a probe found, with what to do about it. `severity: 'error'` makes the engine unusable. */
export interface ReportReason {
  readonly severity: 'error' | 'warning'
  readonly code: string
  readonly message: string
  readonly remedy: string
}

/** What scripts can do on an engine; the conformance suite is keyed on it. */
export interface SandboxCapabilities {
  readonly processes: boolean
  readonly threads: boolean
  readonly preload: boolean
  readonly packages: boolean
  readonly toolsDir: boolean
  readonly systemCallFilter: boolean
  readonly uidPerSandbox: boolean
}
