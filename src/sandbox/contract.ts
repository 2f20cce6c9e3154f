import type { ReadyFrame } from '../protocol/index.ts'
import type { SandboxLimits } from './limits.ts'

/**
 * The strength of an engine's isolation, strongest first. It comes from probes, never from configuration.
 */
export type IsolationLevel = 'vm' | 'gvisor' | 'container' | 'os-sandbox' | 'language-only' | 'none'

/**
 * The access of scripts to the network. `language-only`: no API of the language reaches it, but the operating system
 * does not stop a script that breaks out of the language.
 */
export type NetworkAccess = 'none' | 'language-only' | 'open'

/** A limit that an engine can enforce. */
export type EnforcedLimit = 'memory' | 'pids' | 'cpu' | 'disk' | 'output' | 'wall'

/** The properties that sandboxes of one kind share; equal specs share a shelf of the pool. */
export interface SandboxSpec {
  readonly limits: SandboxLimits
  /** Absolute directory whose modules scripts can import (read-only in the sandbox). */
  readonly packages?: string
  /** Absolute directory of `*.py` files that are loaded into every script's globals. */
  readonly toolsDir?: string
  /** Modules that are imported once per sandbox, before any script. */
  readonly preload?: readonly string[]
  /** True if its sandboxes check scripts instead of running them: the checker is then loaded ahead. */
  readonly checker?: boolean
  /**
   * True if its sandboxes serve several activities at once, for one owner (docs/protocol.md, "Workspaces"). Only for engines
   * with the capability `workspaces`.
   */
  readonly activities?: boolean
}

/** Makes sandboxes in one way. An engine reads no frame after the harness's `ready`. */
export interface SandboxEngine {
  readonly name: string
  /** The place where its sandboxes run, if the environment decides it. A Python found there is cached for that place alone. */
  readonly place?: string
  /** True if its sandboxes have packages as they were at their start, so that a later addition reaches only new ones. */
  readonly copiesPackages?: boolean
  /** Reports what is in force on this machine, from probes with the production flags. Never throws for a missing part. */
  report(options?: { signal?: AbortSignal }): Promise<SandboxReport>
  /**
   * Starts a harness somewhere isolated; resolves when it has sent `ready`.
   * @throws SandglassError with a code that names what is missing and the remedy.
   */
  create(spec: SandboxSpec, options?: CreateOptions): Promise<Sandbox>
  /** Releases the resources of the engine itself. It does not end sandboxes. */
  close(): Promise<void>
}

/** Options for the start of a sandbox. */
export interface CreateOptions {
  readonly signal?: AbortSignal
  /** True if no caller waits for it: if the engine can, it then gives running scripts priority on the CPU. */
  readonly background?: boolean
  /** Gets why the start waits, in words for people, whenever that changes: a checkout that times out meanwhile says it. */
  readonly onWaiting?: (why: string) => void
}

/** One isolated place with a running harness in it. */
export interface Sandbox extends AsyncDisposable {
  readonly id: string
  readonly info: SandboxInfo
  readonly channel: Channel
  /** The frame with which the harness became ready. */
  readonly ready: ReadyFrame
  /** Settles once, when nothing of the sandbox runs any more. Never rejects. */
  readonly closed: Promise<Ending>
  /**
   * Processes of this sandbox that the kernel killed for memory so far, as the host sees it; null when nothing counts them.
   * An engine whose harness counts them (`memory_kills` of `script_done`) may return 0.
   */
  memoryKills(): number | null
  /**
   * A directory of the host that the sandbox sees as `/inputs`, and cannot write to. Only for sandboxes with activities, of
   * engines that can bind one; it is removed with the sandbox.
   */
  readonly inputsDir?: string
  /**
   * Lifts the CPU limit until the returned object is disposed of: a run that must end now, by its deadline or by a
   * cancellation, then does not wait for the script's share. If it cannot be lifted, the limit stays in force. Disposing
   * rejects when the limit could not be restored: such a sandbox must not be used again. Absent where the harness does not
   * share the script's limit.
   */
  liftCpuLimit?(): AsyncDisposable
  /**
   * Limits the sandbox to fewer CPUs than its spec says, until the returned object is disposed of. Of several such limits, the
   * lowest applies; `liftCpuLimit` suspends them. Rejects when the limit could not be set. Disposing rejects when it could not be
   * restored: such a sandbox must not be used again. Absent where the limit cannot be changed; the capability `lesserCpus` says so.
   */
  lowerCpuLimit?(cpus: number): Promise<AsyncDisposable>
  /**
   * Resolves when it can begin a run at once, or has ended. Never rejects. Absent if it always can. For an engine that
   * prepares something before each run, so that the run's time does not include the preparation.
   */
  recovered?(): Promise<void>
  /**
   * The memory in bytes that it takes now, while it runs nothing. Absent: as much as at its start (`memory_bytes` of the frame
   * `ready`). For an engine whose sandboxes keep more ready the more they are used.
   */
  idleBytes?(): number
  /** Ends everything in it at once and releases its resources; idempotent; resolves when that is done. */
  destroy(): Promise<void>
}

/** The facts about one sandbox, added to each result. */
export interface SandboxInfo {
  readonly engine: string
  readonly level: IsolationLevel
  /** Version of the Python inside, for example `3.11.2`. */
  readonly python: string
  readonly network: NetworkAccess
  /** The IP address at which the host reaches the ports of scripts. Absent if it cannot reach them over a network. */
  readonly address?: string
  readonly limitsEnforced: readonly EnforcedLimit[]
  /** For limits that are not enforced: the reason, the remedy and the limit in force instead. For messages. */
  readonly limitsMissing?: Readonly<Partial<Record<EnforcedLimit, string>>>
  readonly limits: SandboxLimits
}

/** Ordered duplex of bytes between host and harness. One reader at a time. */
export interface Channel {
  /** Resolves to the next chunk, or null at the end. It reads at most one chunk ahead, which applies back-pressure. */
  receive(): Promise<Uint8Array | null>
  /** Gives the memory of the last chunk back: nobody reads it any more. V8 frees large buffers late. Default: it is left to V8. */
  release?(): void
  /** Resolves when the bytes were written; rejects when the peer is gone. */
  send(bytes: Uint8Array): Promise<void>
  /** Ends both directions. Idempotent. */
  close(): void
}

/** The end of a sandbox, or of a run in it. */
export interface Ending {
  readonly cause: EndingCause
  readonly exitCode: number | null
  readonly signal: string | null
  /** The party that caused the end. */
  readonly by: 'script' | 'harness' | 'host' | 'kernel' | 'unknown'
  /** The stderr of the launcher or harness of the sandbox, and why the cluster ended it; bounded, empty when there was none. */
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

/** The result of the probes of one engine on this machine. */
export interface SandboxReport {
  readonly engine: string
  readonly usable: boolean
  readonly level: IsolationLevel
  /** The reasons why it is not usable, or only in part; each with a remedy. */
  readonly reasons: readonly ReportReason[]
  readonly limitsEnforced: readonly EnforcedLimit[]
  readonly network: NetworkAccess
  readonly capabilities: SandboxCapabilities
  /** Facts found by probing: name to value, for people and for `doctor`. */
  readonly probes: Readonly<Record<string, string | number | boolean | null | readonly string[]>>
}

/** A problem that a probe found, with its remedy. `severity: 'error'` makes the engine unusable. */
export interface ReportReason {
  readonly severity: 'error' | 'warning'
  readonly code: string
  readonly message: string
  readonly remedy: string
}

/** The capabilities of scripts on an engine; they select the cases of the conformance suite. */
export interface SandboxCapabilities {
  readonly processes: boolean
  readonly threads: boolean
  readonly preload: boolean
  readonly packages: boolean
  readonly toolsDir: boolean
  readonly systemCallFilter: boolean
  readonly uidPerSandbox: boolean
  /** Sandboxes that last for one owner: scripts whose files stay, and operations on files. Absent: no. */
  readonly workspaces?: boolean
  /** In workspaces several activities at once, and so started programs, terminals and connections. Absent: no. */
  readonly concurrentActivities?: boolean
  /** Programs in workspaces. Absent: no, and no terminals and connections either. */
  readonly programs?: boolean
  /**
   * Sessions in workspaces: cells with checkpoints, or cells alone, whose session is lost when its process ends. Absent: none.
   */
  readonly sessions?: 'checkpoints' | 'cells'
  /** Fewer CPUs for one run or program than its sandbox has. Absent: no. */
  readonly lesserCpus?: boolean
}
