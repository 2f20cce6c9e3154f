import type { CheckAnswer } from './check-request.ts'
import { execute } from './execute.ts'
import { prepareCheck, type SandboxCheckRequest } from './prepare.ts'
import type { ExecutionResult, Violation } from './result.ts'

/** The violations in a script, and the run of the checker that found them. */
export interface CheckedScript {
  /** Undefined when the check was cancelled or its sandbox was lost; `run` says which. */
  readonly violations: readonly Violation[] | undefined
  /** True if `whole` of the request is the script. */
  readonly isWhole: boolean
  /** The names of the tools that the script's text calls; undefined without `listTools`, or without an answer of the checker. */
  readonly calledTools: readonly string[] | undefined
  readonly run: ExecutionResult
}

/**
 * Checks a script in one checked-out sandbox; nothing of it is executed. A script that the checker cannot
 * process is a violation too (`checker_failed`), so that no script runs unchecked.
 * @throws SandglassError `invalid_request`, `sandbox_busy`
 */
export async function checkScript(request: SandboxCheckRequest): Promise<CheckedScript> {
  const prepared = prepareCheck(request)
  const run = await execute(prepared, performance.now(), async () => {})
  if (run.success) return { ...(run.finalData as CheckAnswer), run }
  const isUnchecked = run.status === 'cancelled' || run.status === 'sandbox-lost'
  return { violations: isUnchecked ? undefined : [checkerFailed(run)], isWhole: false, calledTools: undefined, run }
}

function checkerFailed({ status, error }: ExecutionResult): Violation {
  return {
    code: 'checker_failed',
    line: 1,
    column: 0,
    message: `the script could not be checked: ${error ?? status}`,
    hint: 'Write a shorter and simpler script: less nesting, fewer lines, no generated source.',
  }
}
