import type { SandglassOptions } from '../../../src/options/index.ts'
import type { Sandglass } from '../../../src/sandglass.ts'
import type { Resources } from '../../../test/support/resources.ts'

/** Options that a case can set on its Sandglass. */
export type OpenOptions = Omit<SandglassOptions, 'engine' | 'local' | 'docker'>

/**
 * An engine as the adversarial cases see it: a factory, and functions that inspect a sandbox from the host. A new engine
 * implements this interface and runs the same cases.
 */
export interface EngineUnderTest {
  readonly name: string
  /** The module that exports `openEngine(state)`; separate host processes load it. */
  readonly module: string
  /** The argument of `openEngine` with which another host process shares the state of this engine. */
  readonly state: string
  open(options?: OpenOptions): Promise<Sandglass>
  /** Living processes of a sandbox as the host sees them, without zombies; empty when the sandbox is gone. */
  processesOf(sandboxId: string): readonly SandboxProcess[]
  /** CPU time of the living processes of a sandbox, in milliseconds. */
  cpuMsOf(sandboxId: string): number
  /** Ids of the sandboxes of a host process, including those that remain after it died. */
  sandboxesOf(host: number): readonly string[]
  /**
   * Returns a function that lists the containers of the Sandglass to which a sandbox belongs; null for an engine without
   * containers.
   */
  watchContainers(sandboxId: string): (() => readonly string[]) | null
  /** All that the daemon reports about a sandbox, as text; null for an engine without a daemon. */
  inspectFromHost(sandboxId: string): string | null
  /** Machine resources that a host process (default: this one) and the named sandboxes hold. */
  resources(sandboxIds: ReadonlySet<string>, host?: number): Resources
  /** Resources of the named sandboxes as the product lists them, for `sandglass ps` and the next start. */
  resourcesOf(sandboxIds: ReadonlySet<string>): Promise<readonly ResourceRecord[]>
  /** Resources of the living sandboxes as the machine shows them; `resourcesOf` must list all of them. */
  livingResourcesOf(sandboxIds: ReadonlySet<string>): readonly ResourceRecord[]
  /** True when the orphans of a killed host disappear before another host starts. */
  readonly removesItself: boolean
  /** Directories on the host that belong to runs. Empty when no run is active. */
  runDirectories(): readonly string[]
  /** Names of files and containers that the engine made on the host. */
  namesOnHost(): readonly string[]
  /** A host path on the disk of the engine; scripts must not see it. */
  readonly hostPath: string
  /** The path of `packages` inside the sandbox. */
  readonly packagesInside: string
  /** Expected errno of a write, by read-only directory. */
  readonly readOnly: Readonly<Record<string, string>>
  /** System calls that the filter of the harness allows and the filter of the engine blocks. */
  readonly blockedByEngineFilter: readonly string[]
  /** Releases what the engine holds for the tests. */
  close(): Promise<void>
}

/** A process of a sandbox. */
export interface SandboxProcess {
  readonly pid: number
  /** Its pid inside the sandbox. */
  readonly insidePid: number
  readonly uid: number
}

/** A resource of a sandbox on this machine. */
export interface ResourceRecord {
  readonly kind: string
  readonly id: string
  /** State of the host process that made it, as the product knows it. */
  readonly owner: 'alive' | 'gone' | 'unknown'
}
