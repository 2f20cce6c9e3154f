import { SandglassError } from './errors/index.ts'
import {
  checkScript,
  type CheckedScript,
  type CheckRequest,
  type ExecutionResult,
  type Policy,
  type Violation,
} from './executor/index.ts'
import type { SandboxPool } from './pool/index.ts'
import { definedOf } from './support/index.ts'
import { prepareTools, type ToolsInput } from './tools/index.ts'

/** Checks that one checker sandbox makes before it is replaced. It runs no script, so nothing wears it out. */
const MAX_USES = 10_000

/** Sandboxes that check scripts and run none, beside the leases of the runs. The first check makes the first. */
export interface Checkers {
  check(request: CheckRequest, timeoutMs: number | undefined): Promise<CheckedScript>
}

/**
 * Keeps one checker sandbox warm, with another while that one is busy.
 * @param pool whose sandboxes of the spec `name` run what is checked; the checkers end with it.
 */
export function checkersOf(pool: SandboxPool, name: string): Checkers {
  let beside: SandboxPool | undefined
  const open = (): SandboxPool =>
    pool.beside(name, { checker: true }, { poolSize: 1, maxOverflow: 1, maxUses: MAX_USES })
  return {
    async check(request, timeoutMs) {
      const { signal } = request
      const lease = await (beside ??= open()).checkout(name, {
        ...(signal === undefined ? {} : { signal }),
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
      })
      try {
        return await checkScript({ ...request, sandbox: lease.sandbox })
      } finally {
        void lease.release()
      }
    },
  }
}

/** What is wrong with a script; nothing of it was executed. */
export interface CheckResult {
  readonly ok: boolean
  readonly violations: readonly Violation[]
}

/** What of a run, or of a check, the checker is told. */
export interface CheckedRun extends Pick<
  CheckRequest,
  'mode' | 'executionId' | 'signal' | 'allowModules' | 'preamble' | 'postamble'
> {
  readonly policy?: Policy
  readonly tools?: ToolsInput | undefined
  /** Only the names count. */
  readonly inputs?: Readonly<Record<string, unknown>>
  /** Only the paths count. */
  readonly files?: Readonly<Record<string, unknown>>
  readonly checkoutTimeoutMs?: number | undefined
}

/** The result of a run whose script has mistakes, or undefined when it may run. */
export async function rejectionOf(
  checkers: Checkers,
  script: string,
  run: CheckedRun,
): Promise<ExecutionResult | undefined> {
  const { policy = 'off' } = run
  if (policy === 'off') return undefined
  const { violations, run: check } = await checked(checkers, script, policy, run)
  if (violations === undefined) return check
  if (violations.length === 0) return undefined
  return {
    ...check,
    status: 'rejected',
    success: false,
    errorKind: 'validation',
    hasResult: false,
    finalData: null,
    error: rejectionText(violations),
    traceback: null,
    warnings: [],
    outputBytes: 0,
    ending: { cause: 'not-started', exitCode: null, signal: null, by: 'host' },
    violations,
  }
}

/** Why a script was not run, in one sentence. */
export function rejectionText([first, ...others]: readonly Violation[]): string {
  const more = others.length > 0 ? ` (and ${others.length} more)` : ''
  return `the script was rejected before it ran: line ${first?.line}: ${first?.message}${more}`
}

/**
 * What the caller of a check is told.
 * @throws SandglassError `aborted` or `sandbox_setup_failed` when the check did not come to its end, or that of `check`.
 */
export async function checkResultOf(
  checkers: Checkers,
  script: string,
  policy: Exclude<Policy, 'off'>,
  run: CheckedRun,
): Promise<CheckResult> {
  const { violations, run: check } = await checked(checkers, script, policy, run)
  if (violations === undefined) {
    const isAborted = check.status === 'cancelled'
    throw new SandglassError(isAborted ? 'aborted' : 'sandbox_setup_failed', `the check ended early: ${check.error}`)
  }
  return { ok: violations.length === 0, violations }
}

/** What is wrong with a script by a policy. */
function checked(
  checkers: Checkers,
  script: string,
  policy: Exclude<Policy, 'off'>,
  run: CheckedRun,
): Promise<CheckedScript> {
  const { inputs = {}, tools, allowModules = [], files = {} } = run
  const set = tools === undefined ? undefined : prepareTools(tools)
  return checkers.check(
    {
      script,
      policy,
      names: Object.keys(inputs),
      tools: set?.checked ?? [],
      // Modules among its own files are there for the script, and not for the checker to look at.
      allowModules: [...allowModules, ...(policy === 'standard' ? modulesAmong(Object.keys(files)) : [])],
      ...definedOf(run, ['mode', 'executionId', 'signal', 'preamble', 'postamble']),
    },
    run.checkoutTimeoutMs,
  )
}

/** Top-level modules and packages that paths below the workspace make. */
function modulesAmong(paths: readonly string[]): string[] {
  return paths.flatMap((path) => /^([^/]+)(?:\/|\.py$)/.exec(path)?.[1] ?? [])
}
