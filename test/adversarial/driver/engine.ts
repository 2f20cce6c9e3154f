import type { Resources } from '../../support/resources.ts'
import type { Sandglass, SandglassOptions } from '../../../src/sandglass.ts'

/** What a case may ask of the Sandglass that it runs on. */
export type OpenOptions = Omit<SandglassOptions, 'engine' | 'local'>

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
  /** Ids of containers that exist; null for an engine that makes none. */
  containers(): readonly string[] | null
  /** What a host process (this one) and the named sandboxes hold of the machine. */
  resources(sandboxIds: ReadonlySet<string>, host?: number): Resources
  /** Directories on the host that belong to runs. Empty when nothing runs. */
  runDirectories(): readonly string[]
  /** A path that must not be seen from inside. */
  readonly hostPath: string
  /** Where `packages` is inside. */
  readonly packagesInside: string
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
