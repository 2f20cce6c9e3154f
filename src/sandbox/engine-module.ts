import type { SandboxEngine, SandboxReport } from './contract.ts'

/** A label and a text: one line of `sandglass doctor`. */
export type ReportLine = readonly [label: string, text: string]

/** The functions of one engine, which its folder exports for the table of engines. */
export interface EngineModule<Options extends object = object> {
  /**
   * Makes an engine. Nothing is started before its first use.
   * @throws TypeError naming the option that is wrong or does not exist.
   */
  makeEngine(options?: Options): SandboxEngine
  /** Completes a report of `makeEngine()` with checks that need further sandboxes. */
  extendReport?(report: SandboxReport, signal: AbortSignal): Promise<SandboxReport>
  /** The lines of `doctor` that only this engine has, from the probes of its report. */
  reportLines(probes: SandboxReport['probes']): readonly ReportLine[]
  /**
   * Lists the resources of all sandboxes of this engine on the machine, or in the cluster of these options, of any owner. Absent
   * if nothing outlives the host.
   * @throws SandglassError when the resources cannot be listed.
   */
  listResources?(options?: Options): Promise<readonly Resource[]>
  /**
   * Removes the resources of dead owners and lists them. Never touches those of a living owner.
   * @throws SandglassError when the resources cannot be listed.
   */
  pruneOrphans?(options?: Options): Promise<readonly Resource[]>
}

/** A resource of Sandglass on the machine, in use or left by an owner that died. The keys are those of `ps --json`. */
export interface Resource {
  /** The type, in a word that the engine chooses, for example `process` or `container`. */
  readonly kind: string
  /** A pid, a path, or the id that a daemon gave it. */
  readonly id: string
  /** The sandbox that it belongs to; null when that is not known. */
  readonly sandbox: string | null
  /** The state of the process that made it; `unknown` if this machine or state directory does not show it. */
  readonly owner: 'alive' | 'gone' | 'unknown'
  /** The uid that it holds; null when it holds none. */
  readonly uid: number | null
}
