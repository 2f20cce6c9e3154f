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
   * Files of every script, by path; the prompt lists them; no streams. In a `workspace`, they are put there before
   * the first script, and stay as scripts leave them.
   */
  readonly files?: FilesInput | undefined
  /** Runs all scripts in this workspace, where their files stay. */
  readonly workspace?: Workspace | undefined
  /** In a workspace: gives the secrets also where other activities could read them (its `trust` is `shared`). Default false. */
  readonly shareSecrets?: boolean | undefined
  /**
   * With `mode: 'interactive'`: true runs the steps as cells of one session, so that variables stay, and prompts name them. In `workspace`, or in
   * one of its own. Default false.
   */
  readonly session?: boolean | undefined
  /** With `session`: the variables after an exception, as for a cell: `keep` (default) or `rollback`. */
  readonly onError?: 'keep' | 'rollback' | undefined
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
    throw new TypeError('solve: the options are missing; pass at least { model }')
  const own = ['model', 'tools', 'mode', 'dependencies', 'workspace', 'shareSecrets', 'session', 'onError']
  refuseUnknown('solve', options, [...TASK_NAMES, ...own])
  if (options.workspace !== undefined && options.dependencies !== undefined)
    throw packagesOfWorkspaceError('dependencies')
  checkSession(options)
  const { mode } = options
  if (mode !== undefined && !MODES.includes(mode)) throw unknownValueError('mode', 'mode', mode, MODES)
}

function checkSession<T>({ session = false, onError, mode, ...options }: SolveOptions<T>): void {
  if (onError !== undefined && !ON_ERROR.includes(onError))
    throw unknownValueError('onError', 'value', onError, ON_ERROR)
  if (onError !== undefined && !session) throw new TypeError('onError: requires `session: true`')
  if (!session) return
  if (mode !== ExecutionMode.INTERACTIVE) throw new TypeError("session: requires `mode: 'interactive'`")
  for (const name of ['preamble', 'postamble', 'state'] as const) {
    if (options[name] !== undefined)
      throw new TypeError(
        `${name}: cannot be combined with session, whose variables stay from step to step; leave it out`,
      )
  }
}

const ON_ERROR: readonly string[] = ['keep', 'rollback']
const MODES: readonly string[] = Object.values(ExecutionMode)
