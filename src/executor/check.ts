import { execute } from './execute.ts'
import { prepareCheck, type SandboxCheckRequest } from './prepare.ts'
import type { ExecutionResult, Violation } from './result.ts'

/** What a check found, and the run of the checker that found it. */
export interface CheckedScript {
  /** Undefined when the check was cancelled or its sandbox was lost: `run` tells. */
  readonly violations: readonly Violation[] | undefined
  readonly run: ExecutionResult
}

/**
 * Checks a script in one checked-out sandbox; nothing of it is executed. A script that the checker cannot cope with is a
 * violation too (`checker_failed`): nothing is let through unseen.
 * @throws SandglassError `invalid_request`, `sandbox_busy`
 */
export async function checkScript(request: SandboxCheckRequest): Promise<CheckedScript> {
  const prepared = prepareCheck(request)
  const run = await execute(prepared, performance.now(), async () => {})
  if (run.success) return { violations: run.finalData as readonly Violation[], run }
  const isOurs = run.status === 'cancelled' || run.status === 'sandbox-lost'
  return { violations: isOurs ? undefined : [checkerFailed(run)], run }
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
