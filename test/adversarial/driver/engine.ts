import type { SandglassOptions } from '../../../src/options.ts'
import type { Sandglass } from '../../../src/sandglass.ts'
import type { Resources } from '../../support/resources.ts'

/** What a case may ask of the Sandglass that it runs on. */
export type OpenOptions = Omit<SandglassOptions, 'engine' | 'local' | 'docker'>

/**
 * An engine as the adversarial cases see it: a factory, and a look at a sandbox from the host's side. A later engine
 * brings one of these and runs the same cases.
 */
export interface EngineUnderTest {
  readonly name: string
  /** The module that exports `openEngine(state)`, for host processes of their own. */
  readonly module: string
  /** What a host process of its own needs in order to share the state of this one. */
  readonly state: string
  open(options?: OpenOptions): Promise<Sandglass>
  /** Living processes of a sandbox as the host sees them; empty when it is gone. Zombies do not count. */
  processesOf(sandboxId: string): readonly SandboxProcess[]
  /** CPU time that living processes of a sandbox have used, in milliseconds. */
  cpuMsOf(sandboxId: string): number
  /** Ids of the sandboxes that a host process has made, or its death has left. */
  sandboxesOf(host: number): readonly string[]
  /**
   * A look at the containers of the Sandglass that a sandbox is of, for as long as the test lasts; null for an engine that
   * makes none.
   */
  watchContainers(sandboxId: string): (() => readonly string[]) | null
  /** Everything that the machinery outside tells of a sandbox to whoever may ask it; null when there is none to ask. */
  toldAbout(sandboxId: string): string | null
  /** What a host process (this one) and the named sandboxes hold of the machine. */
  resources(sandboxIds: ReadonlySet<string>, host?: number): Resources
  /** What the product itself lists of the named sandboxes, for `sandglass ps` and the next start. */
  remnantsOf(sandboxIds: ReadonlySet<string>): Promise<readonly Remains[]>
  /** What that list must hold of those that live, as the machine sees it. */
  livingOf(sandboxIds: ReadonlySet<string>): readonly Remains[]
  /** Whether all that a killed host leaves goes by itself, without a next start. */
  readonly removesItself: boolean
  /** Directories on the host that belong to runs. Empty when nothing runs. */
  runDirectories(): readonly string[]
  /** Names that the engine gave to things on the host: files, containers. */
  namesOnHost(): readonly string[]
  /** A path that must not be seen from inside, on the disk that the engine uses. */
  readonly hostPath: string
  /** Where `packages` is inside. */
  readonly packagesInside: string
  /** How an attempt to write is refused where nobody may write: errno by directory. */
  readonly readOnly: Readonly<Record<string, string>>
  /** System calls that the harness's filter lets through and a filter of the engine's own does not. */
  readonly refusedBeneath: readonly string[]
  /** Gives back what the tests took. */
  close(): Promise<void>
}

/** A process of a sandbox. */
export interface SandboxProcess {
  readonly pid: number
  /** Its pid inside. */
  readonly insidePid: number
  readonly uid: number
}

/** Something of a sandbox that exists on the machine. */
export interface Remains {
  readonly kind: string
  readonly id: string
  /** Whether the host that made it lives, as far as the product can tell. */
  readonly owner: 'alive' | 'gone' | 'unknown'
}
