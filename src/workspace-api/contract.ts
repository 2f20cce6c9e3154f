import type { File, InputSpec, OutputManifest, PutFile } from './files-contract.ts'
import type { OutputSpec } from './output-spec.ts'
import type { ProgramSession, RunProgramSpec, RunResult, InteractiveProgramSpec } from './programs-contract.ts'

/** A place that executes programs and keeps files, until it is cleaned up. */
export interface Workspace {
  readonly id: string
  /** Its path as programs in it see it. */
  readonly path: string
}

/** Requirements of a workspace. One that the engine cannot meet is refused. */
export interface WorkspacePolicy {
  /** True to refuse isolation by the language alone. Default false; every engine uses its strongest isolation. */
  readonly isolated?: boolean
  /** True to keep the files when it is cleaned up. An engine of a Sandglass refuses it. */
  readonly persist?: boolean
  /** Maximum bytes of its files. Default: `limits.diskBytes` of the Sandglass. */
  readonly maxDiskBytes?: number
}

/** Options of every call that takes time. */
export interface CallOptions {
  readonly signal?: AbortSignal
}

/** The abilities of an engine on this machine. */
export interface Capabilities {
  /** The level of isolation, such as `os-sandbox` or `container`. */
  readonly isolation: string
  readonly networkAllowed: boolean
  /** True if a staged directory can be read-only for every program in the workspace. */
  readonly readOnlyMount: boolean
  /** True if output can be read while a program runs. */
  readonly streaming: boolean
  /** Limit of the files of a workspace in bytes, if the options of its engine set it; undefined otherwise. */
  readonly maxDiskBytes: number | undefined
  /** True if programs can be run; otherwise only scripts and files are available. */
  readonly programs: boolean
  /** True if several programs can run at once, and in a terminal. */
  readonly interactive: boolean
  /** The parts of {@link ResourceLimits} that are enforced. Others are refused. */
  readonly limits: readonly ('cpuPercent' | 'memoryMB' | 'maxPIDs')[]
}

/** Options of {@link WorkspaceFS.stageDirectory}. */
export interface StageOptions extends CallOptions {
  /** True for a tree that no program in the workspace can change; refused where the engine cannot guarantee that. */
  readonly readOnly?: boolean
  /** Lets a read-only tree be mounted from a directory of the host instead of being copied into the workspace. */
  readonly allowMount?: boolean
}

/** Makes and ends workspaces. */
export interface WorkspaceManager {
  /**
   * Makes a workspace of its own, whatever the id of the execution.
   * @throws SandglassError `feature_unavailable` or `limit_not_enforceable` for a policy that the engine cannot enforce.
   */
  createWorkspace(execId: string, policy?: WorkspacePolicy, options?: CallOptions): Promise<Workspace>
  /** Ends a workspace with everything in it. Idempotent. */
  cleanup(ws: Workspace, options?: CallOptions): Promise<void>
  /**
   * The instance behind a workspace; a registry makes a new workspace when the instance has changed. Absent: it never changes.
   * @throws if the instance cannot be determined; a registry passes the error on, and keeps the workspace.
   */
  instanceOf?(ws: Workspace, options?: CallOptions): Promise<string>
}

/** Files of workspaces. */
export interface WorkspaceFS {
  /** Writes files. @throws SandglassError `invalid_request`, `path_refused` for a path that escapes the workspace, `no_space` */
  putFiles(ws: Workspace, files: readonly PutFile[], options?: CallOptions): Promise<void>
  /**
   * Stages a directory of the host. Links that lead out of it, devices and sockets are refused.
   * @returns `mountUsed`: true if it is mounted from the host, and read-only.
   * @throws SandglassError `invalid_request`, `path_refused`, `limit_not_enforceable` for `readOnly` where that cannot be guaranteed
   */
  stageDirectory(
    ws: Workspace,
    src: string,
    to: string,
    options?: StageOptions,
  ): Promise<{ readonly mountUsed: boolean }>
  /** The regular files in the workspace that globs match, each once, sorted by path, truncated after 4 MiB. @throws SandglassError */
  collect(ws: Workspace, patterns: readonly string[], options?: CallOptions): Promise<File[]>
  /** Stages inputs, in order. @throws SandglassError naming the input. */
  stageInputs(ws: Workspace, specs: readonly InputSpec[], options?: CallOptions): Promise<void>
  /**
   * Collects files by a spec. A truncated file is never saved.
   * @throws SandglassError `too_large` for a file that would be truncated, before anything is saved
   */
  collectOutputs(ws: Workspace, spec: OutputSpec, options?: CallOptions): Promise<OutputManifest>
}

/** Runs programs to their end. */
export interface ProgramRunner {
  /**
   * Runs a program. Whatever it does is a value; a program that does not exist has the exit code -1.
   * @throws SandglassError `invalid_request`, `path_refused`, `limit_not_enforceable`, `aborted`
   */
  runProgram(ws: Workspace, spec: RunProgramSpec, options?: CallOptions): Promise<RunResult>
}

/** A runner that starts interactive programs. */
export interface InteractiveProgramRunner {
  /** Starts a program. @throws SandglassError `program_not_found`, and what `runProgram` throws. */
  startProgram(ws: Workspace, spec: InteractiveProgramSpec, options?: CallOptions): Promise<ProgramSession>
}

/** Workspaces, their files and their programs. */
export interface Engine {
  manager(): WorkspaceManager
  fs(): WorkspaceFS
  /** Interactive programs are available if it has `startProgram`. */
  runner(): ProgramRunner & Partial<InteractiveProgramRunner>
  describe(): Capabilities
}

/** An object that has an engine, such as a code executor. */
export interface EngineProvider {
  engine(): Engine
}

const NOTHING: Capabilities = {
  isolation: 'none',
  networkAllowed: false,
  readOnlyMount: false,
  streaming: false,
  maxDiskBytes: undefined,
  programs: false,
  interactive: false,
  limits: [],
}

/** Makes an engine from its parts. Without `capabilities` it reports none. */
export function newEngine(
  manager: WorkspaceManager,
  fs: WorkspaceFS,
  runner: ReturnType<Engine['runner']>,
  capabilities: Capabilities = NOTHING,
): Engine {
  return { manager: () => manager, fs: () => fs, runner: () => runner, describe: () => capabilities }
}
