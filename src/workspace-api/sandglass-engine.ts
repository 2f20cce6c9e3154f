import type { WorkspaceOptions } from '../options/index.ts'
import type { SandboxReport } from '../sandbox/index.ts'
import { refuseUnknown } from '../support/index.ts'
import type { CallOptions, Capabilities, Engine, Workspace } from './contract.ts'
import { SandglassFS } from './files.ts'
import { SandglassManager, type WorkspaceSource } from './manager.ts'
import type { SkillMeta } from './metadata.ts'
import { OpenWorkspaces } from './open-workspaces.ts'
import { SandglassRunner } from './runner.ts'
import { type SkillOptions, stageSkill } from './stage-skill.ts'

/** Options of {@link newSandglassEngine}. */
export interface SandglassEngineOptions {
  /** Options of each workspace, such as `dependencies`, `limits` and `idleTimeoutSec`. */
  readonly workspace?: Omit<WorkspaceOptions, 'files' | 'signal'>
  /** Absolute directories of the host; `host://` reaches only paths below them. Default: none. */
  readonly hostDirectories?: readonly string[]
}

/** An engine over the workspaces of a Sandglass. */
export interface SandglassEngine extends Engine {
  /**
   * Stages a skill, a directory of the host with a `SKILL.md`, at `skills/NAME`: by default mounted read-only from the host. A
   * read-only one with the same digest is not staged again.
   * @throws SandglassError `invalid_request` for a directory that is not a skill, `limit_not_enforceable` where scripts could change it
   */
  stageSkill(ws: Workspace, directory: string, options?: SkillOptions): Promise<SkillMeta>
}

/**
 * Makes an engine of a Sandglass, whose `close()` ends its workspaces.
 * @throws SandglassError `invalid_request`; TypeError for an option that does not exist.
 */
export async function newSandglassEngine(
  sandglass: WorkspaceSource,
  options: SandglassEngineOptions = {},
): Promise<SandglassEngine> {
  refuseUnknown('newSandglassEngine', options, ['workspace', 'hostDirectories'])
  const { workspace = {}, hostDirectories = [] } = options
  const capabilities = capabilitiesOf(await sandglass.report(), workspace)
  const open = new OpenWorkspaces()
  const manager = new SandglassManager(sandglass, capabilities, open, workspace)
  const fs = new SandglassFS(open, hostDirectories)
  const runner = new SandglassRunner(open)
  return {
    manager: () => manager,
    fs: () => fs,
    runner: () => runner,
    describe: () => capabilities,
    stageSkill: (ws: Workspace, directory: string, given?: SkillOptions & CallOptions) =>
      stageSkill(open.of(ws), directory, given),
  }
}

function capabilitiesOf(
  { level, network, capabilities, limitsEnforced, engine }: SandboxReport,
  { limits }: Pick<WorkspaceOptions, 'limits'>,
): Capabilities {
  const programs = capabilities.programs === true
  return {
    isolation: level,
    networkAllowed: network !== 'none',
    readOnlyMount: engine === 'local',
    streaming: programs && capabilities.concurrentActivities === true,
    maxDiskBytes: limitsEnforced.includes('disk') ? limits?.diskBytes : undefined,
    programs,
    interactive: programs && capabilities.concurrentActivities === true,
    limits: programs
      ? [...(capabilities.lesserCpus === true ? (['cpuPercent'] as const) : []), 'memoryMB', 'maxPIDs']
      : [],
  }
}
