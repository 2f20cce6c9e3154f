import { ExecutionMode, type FilesInput } from '../executor/index.ts'
import type { ModelInput } from '../llm/index.ts'
import { TASK_NAMES, type TaskOptions } from '../orchestrator/index.ts'
import { refuseUnknown } from '../support/index.ts'
import type { ToolsInput } from '../tools/index.ts'
import { unknownValueError } from './unknown-value.ts'
import { packagesOfWorkspaceError, type Workspace } from './run.ts'

/** Options of `Sandglass.solve`. */
export interface SolveOptions<T = unknown> extends Omit<TaskOptions<T>, 'files'> {
  /**
   * Files that every script finds, by path; the prompt lists them; no streams. In a `workspace`, they are put there before
   * the first script, and stay as scripts leave them.
   */
  readonly files?: FilesInput | undefined
  /** Runs all scripts in this workspace, where their files stay. */
  readonly workspace?: Workspace | undefined
  /** In a workspace: gives the secrets also where other activities could read them (its `trust` is `shared`). Default false. */
  readonly shareSecrets?: boolean | undefined
  /** Writes the scripts: any async function, a language model of the AI SDK, a chat model of LangChain. */
  readonly model: ModelInput
  /** The functions that scripts can call. */
  readonly tools?: ToolsInput | undefined
  /** Packages that scripts can import, in place of those of `createSandglass`. */
  readonly dependencies?: readonly string[] | undefined
  /** Default `plan`: one script for the whole task. `interactive`: step by step. */
  readonly mode?: ExecutionMode | undefined
}

/**
 * Checks the options of `solve` that no lower room checks.
 * @throws TypeError for an option that does not exist, or without a model.
 */
export function checkSolveOptions<T>(options: SolveOptions<T>): void {
  if (typeof options !== 'object' || options === null)
    throw new TypeError('solve: it needs options, at least { model }')
  const own = ['model', 'tools', 'mode', 'dependencies', 'workspace', 'shareSecrets']
  refuseUnknown('solve', options, [...TASK_NAMES, ...own])
  if (options.workspace !== undefined && options.dependencies !== undefined)
    throw packagesOfWorkspaceError('dependencies')
  const { mode } = options
  if (mode !== undefined && !MODES.includes(mode)) throw unknownValueError('mode', 'mode', mode, MODES)
}

const MODES: readonly string[] = Object.values(ExecutionMode)
