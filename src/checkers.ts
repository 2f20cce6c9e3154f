import { type Declarer, explainModule } from './environments/index.ts'
import { SandglassError } from './errors/index.ts'
import {
  checkScript,
  type CheckedScript,
  type CheckRequest,
  type ExecutionResult,
  type Policy,
  type Violation,
} from './executor/index.ts'
import { statusFields } from './outcomes/index.ts'
import type { SandboxPool } from './pool/index.ts'
import { definedOf } from './support/index.ts'
import { prepareTools, type ToolsInput } from './tools/index.ts'

/** Checks that one checker sandbox makes before it is replaced. It runs no script, so nothing wears it out. */
const MAX_USES = 10_000

/** The module in a violation about one that does not exist, or that `strict` refuses. */
const MODULE =
  /^(?:there is no module '([A-Za-z_][\w.]*)' in the sandbox|([A-Za-z_][\w.]*) may not be imported in a strict script)$/

/** Sandboxes that check scripts and run none. They do not count towards the sandboxes of runs. The first check starts the first one. */
export interface Checkers {
  check(request: CheckRequest, timeoutMs: number | undefined): Promise<CheckedScript>
}

/**
 * Keeps one checker sandbox warm, and starts another one while it is busy.
 * @param pool the pool that runs the checked scripts, in its spec `name`; the checkers end with it.
 */
export function checkersOf(pool: SandboxPool, name: string): Checkers {
  let checkers: SandboxPool | undefined
  const open = (): SandboxPool =>
    pool.beside(name, { checker: true }, { poolSize: 1, maxOverflow: 1, maxUses: MAX_USES })
  return {
    async check(request, timeoutMs) {
      const { signal } = request
      const lease = await (checkers ??= open()).checkout(name, {
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

/** The mistakes in a script; none of it was executed. */
export interface CheckResult {
  readonly ok: boolean
  readonly violations: readonly Violation[]
}

/** The violations in the script of an answer. */
export interface AnswerCheck extends CheckResult {
  /** True if the script is the whole answer. */
  readonly isWhole: boolean
  /** The tools that the script names; undefined without `listTools`, or if the checker did not answer. */
  readonly calledTools: readonly string[] | undefined
  /** The sandbox that checked it. Sandboxes of the same engine that run scripts have the same isolation. */
  readonly sandbox: ExecutionResult['sandbox']
}

/** The options of a run, or of a check, that matter to the checker. */
export interface CheckedRun extends Pick<
  CheckRequest,
  'mode' | 'executionId' | 'signal' | 'allowModules' | 'preamble' | 'postamble' | 'whole' | 'listTools'
> {
  readonly policy?: Policy
  readonly tools?: ToolsInput | undefined
  /** Only the names count. */
  readonly inputs?: Readonly<Record<string, unknown>>
  /** Modules of the packages that the run declares. */
  readonly environment?: readonly string[]
  /** The party that can declare a package for a missing module; undefined if none can be installed. */
  readonly declarer?: Declarer | undefined
  /** Only the paths count. */
  readonly files?: Readonly<Record<string, unknown>> | undefined
  readonly collect?: readonly string[] | undefined
  /** True for a script in a workspace, which may hold files that are not named here. */
  readonly keepsFiles?: boolean | undefined
  readonly checkoutTimeoutMs?: number | undefined
}

/** The result of a run whose script has mistakes; undefined if the script may run. */
export async function rejectionOf(
  checkers: Checkers,
  script: string,
  run: CheckedRun,
): Promise<ExecutionResult | undefined> {
  const { policy = 'off' } = run
  if (policy === 'off') return undefined
  const { violations, run: check } = await runCheck(checkers, script, policy, run)
  if (violations === undefined) return check
  if (violations.length === 0) return undefined
  return {
    ...check,
    ...statusFields('rejected'),
    success: false,
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

/** Says in one sentence why a script was not run. */
export function rejectionText([first, ...others]: readonly Violation[]): string {
  const more = others.length > 0 ? ` (and ${others.length} more)` : ''
  return `the script was rejected before it ran: line ${first?.line}: ${first?.message}${more}`
}

/** The result of a check for its caller. @throws SandglassError as {@link checkAnswer} does */
export async function checkResultOf(
  checkers: Checkers,
  script: string,
  policy: Exclude<Policy, 'off'>,
  run: CheckedRun,
): Promise<CheckResult> {
  const { ok, violations } = await checkAnswer(checkers, script, policy, run)
  return { ok, violations }
}

/**
 * Checks the script that was found in an answer, or the answer itself if it is Python.
 * @throws SandglassError `aborted` or `sandbox_setup_failed` when the check ended early, or the error of `check`.
 */
export async function checkAnswer(
  checkers: Checkers,
  script: string,
  policy: Policy,
  run: CheckedRun,
): Promise<AnswerCheck> {
  const { violations, isWhole, calledTools, run: check } = await runCheck(checkers, script, policy, run)
  if (violations === undefined) {
    const isAborted = check.status === 'cancelled'
    throw new SandglassError(isAborted ? 'aborted' : 'sandbox_setup_failed', `the check ended early: ${check.error}`)
  }
  return { ok: violations.length === 0, violations, isWhole, calledTools, sandbox: check.sandbox }
}

/** Checks a script by a policy. If its sandbox is lost, the check is repeated once in another one. */
async function runCheck(checkers: Checkers, script: string, policy: Policy, run: CheckedRun): Promise<CheckedScript> {
  const { inputs = {}, tools, allowModules = [], files = {}, collect = [], environment = [] } = run
  const set = tools === undefined ? undefined : prepareTools(tools)
  const request: CheckRequest = {
    script,
    policy,
    names: Object.keys(inputs),
    tools: set?.checked ?? [],
    // The script can import modules of its packages and among its own files; the checker does not read them.
    allowModules: [...allowModules, ...environment, ...(policy === 'standard' ? modulesAmong(Object.keys(files)) : [])],
    hasFiles: run.keepsFiles === true || Object.keys(files).length + collect.length > 0,
    ...definedOf(run, ['mode', 'executionId', 'signal', 'preamble', 'postamble', 'whole', 'listTools']),
  }
  const checked = await checkers.check(request, run.checkoutTimeoutMs)
  const isLost = checked.violations === undefined && checked.run.status === 'sandbox-lost'
  const final = isLost ? await checkers.check(request, run.checkoutTimeoutMs) : checked
  const { declarer } = run
  if (declarer === undefined || final.violations === undefined) return final
  return { ...final, violations: final.violations.map((one) => withPackage(one, declarer)) }
}

/** Adds to a violation the package that contains the missing module. A declared package is also admitted under `strict`. */
function withPackage(violation: Violation, declarer: Declarer): Violation {
  const [, missing, refused] = MODULE.exec(violation.message) ?? []
  const module = missing ?? (declarer === 'nobody' ? undefined : refused)
  const found = module === undefined ? undefined : explainModule(module, declarer)
  if (found === undefined) return violation
  return { ...violation, hint: declarer === 'nobody' ? `${found}. ${violation.hint}` : found }
}

/** The top-level modules and packages among paths of the workspace. */
function modulesAmong(paths: readonly string[]): string[] {
  return paths.flatMap((path) => /^([^/]+)(?:\/|\.py$)/.exec(path)?.[1] ?? [])
}
