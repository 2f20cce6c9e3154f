import { SandglassError } from '../errors/index.ts'
import { type FilesInput, isStdinStream } from '../executor/index.ts'
import { checkReviewer, type Reviewer } from '../review/index.ts'
import { refuseUnknown } from '../support/index.ts'
import type { RunPythonOptions, ToolApproval } from '../tools/index.ts'
import { RUN_OPTIONS_OF_CELLS } from './cell-of-run.ts'
import { RUN_OPTIONS, type RunOptions } from './run.ts'
import type { Session } from './session.ts'

/** Options of `Sandglass.asTool`: the description of the tool, and the options of its runs. */
export interface AsToolOptions
  extends RunPythonOptions, Omit<RunOptions, 'executionId' | 'signal' | 'sandboxId' | 'files' | 'stdin'> {
  /** The standard input of each script, at most 16 MiB. A stream is refused, because it can be read only once. Default: empty. */
  readonly stdin?: Uint8Array | string
  /**
   * Decides about each script that passed the check; no script runs that it does not accept. The answer tells the
   * model the reason. An error that it throws is the error of the call.
   */
  readonly review?: Reviewer
  /**
   * `toolApproval` of the AI SDK's `generateText`, for calls of `tools`: a `user-approval` waits for `Sandglass.approve`, `denied` is
   * a ToolError, `approved` executes, and without an answer the tool itself decides. Functions get no messages and no context.
   */
  readonly toolApproval?: ToolApproval
  /**
   * Files of every script, by path; no streams. In a `workspace`, they are put there before the first script, and
   * stay as scripts leave them.
   */
  readonly files?: FilesInput
  /**
   * Runs each script as a cell of this session: variables persist between calls, and the answer has the value of the last expression.
   * Concurrent calls take turns. Scripts are not checked, because the checker does not know the variables of earlier cells. Default: a
   * run of its own for each script.
   */
  readonly session?: Session
}

/**
 * Checks the options of `asTool` that no run has.
 * @throws TypeError for an option that does not exist, SandglassError `invalid_request` for a stream as `stdin` and for an option
 * that a cell of a session cannot have.
 */
export function checkAsToolOptions(options: AsToolOptions): void {
  refuseUnknown('asTool', options, AS_TOOL_OPTIONS)
  checkReviewer(options.review)
  if (options.session !== undefined) checkOptionsOfCells(options)
  if (!isStdinStream(options.stdin)) return
  throw new SandglassError(
    'invalid_request',
    'stdin: a stream can be read only once, but each script gets it; pass bytes or text',
  )
}

function checkOptionsOfCells(options: AsToolOptions): void {
  for (const name of RUN_OPTIONS) {
    if (RUN_OPTIONS_OF_CELLS.includes(name) || (options as RunOptions)[name] === undefined) continue
    if (name === 'policy' && options.policy === 'off') continue
    throw new SandglassError(
      'invalid_request',
      `${name}: cannot be combined with the option session; ${REASONS[name] ?? 'cells have no such option'}`,
    )
  }
  const other = Object.keys(options.limits ?? {}).find((name) => !LIMITS_OF_CELLS.includes(name))
  if (other === undefined) return
  throw new SandglassError(
    'invalid_request',
    `limits.${other}: is a limit of the session's sandbox; pass it to sg.session()`,
  )
}

const LIMITS_OF_CELLS: readonly string[] = ['executionTimeoutSec', 'maxOutputBytes']
const OF_SESSION = 'pass it to sg.session()'
const REASONS: Partial<Record<keyof RunOptions, string>> = {
  policy: 'the checker knows no variables of earlier cells',
  allowModules: 'the checker knows no variables of earlier cells',
  workspace: 'the session has its own workspace',
  dependencies: OF_SESSION,
  untrustedDependencies: OF_SESSION,
}

const AS_TOOL_OPTIONS: readonly (keyof AsToolOptions)[] = [
  ...RUN_OPTIONS.filter((name) => name !== 'executionId' && name !== 'signal' && name !== 'sandboxId'),
  'name',
  'instructions',
  'maxStubChars',
  'maxAnswerChars',
  'maxAnswerFileBytes',
  'onFiles',
  'review',
  'session',
  'toolApproval',
] as (keyof AsToolOptions)[]
