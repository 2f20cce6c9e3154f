import { execute } from './execute.ts'
import { prepareCheck, type SandboxCheckRequest } from './prepare.ts'
import type { ExecutionResult, Violation } from './result.ts'

/** What a check found, and the run of the checker that found it. */
export interface CheckedScript {
  readonly violations: readonly Violation[]
  readonly run: ExecutionResult
}

/**
 * Checks a script in one checked-out sandbox; nothing of it is executed. A checker that fails, for whatever reason, is a
 * violation too (`checker_failed`): nothing is let through unseen.
 * @throws SandglassError `invalid_request`, `sandbox_busy`, and `aborted` when its signal fired.
 */
export async function checkScript(request: SandboxCheckRequest): Promise<CheckedScript> {
  const prepared = prepareCheck(request)
  const run = await execute(prepared, performance.now(), async () => {})
  return { violations: run.success ? (run.finalData as readonly Violation[]) : [checkerFailed(run)], run }
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
