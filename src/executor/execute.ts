import { messageOf } from '../errors/index.ts'
import type { Ending, Sandbox } from '../sandbox/index.ts'
import { within } from './bounded.ts'
import { claim } from './busy.ts'
import { Conversation } from './conversation.ts'
import { Gathered } from './gathered.ts'
import { Hurry } from './hurry.ts'
import type { Parting } from './parting.ts'
import type { PreparedRun } from './prepare.ts'
import type { ExecutionResult, RunEvent, ServedBy } from './result.ts'
import { judge, type Verdict } from './verdict.ts'

/** How long a sandbox whose channel closed may take to say how it ended. */
const CLOSING_MS = 2000
/** How long a run waits for its sandbox to recover; the time of the run itself begins behind it. */
const RECOVERY_MS = 30_000
/** How long a run waits for its sandbox to be gone. */
const DESTROY_MS = 2000

/**
 * Runs a prepared request and leaves the sandbox either fit for the next run or destroyed.
 * @param started `performance.now()` at the call.
 * @throws SandglassError `sandbox_busy`
 */
export async function execute(
  run: PreparedRun,
  started: number,
  deliver: (event: RunEvent) => Promise<void>,
): Promise<ExecutionResult> {
  const release = claim(run.sandbox)
  try {
    await recovered(run)
    if (run.signal?.aborted === true) return cancelledBeforeStart(run, started)
    const gathered = new Gathered(run)
    const hurry = new Hurry(run.sandbox)
    const { verdict, reusable } = await converse(run, gathered, deliver, hurry)
    if (!reusable || !(await hasItsLimit(hurry, gathered))) await destroy(run.sandbox, gathered)
    return resultOf(run, gathered, verdict, started)
  } catch (error) {
    // A defect of ours: the state of the sandbox is not known.
    await within(run.sandbox.destroy(), DESTROY_MS).catch(() => undefined)
    throw error
  } finally {
    release()
  }
}

/** Waits for a sandbox that makes something ready for each run, no longer than the run is wanted, and not for ever. */
async function recovered({ sandbox, signal }: PreparedRun): Promise<void> {
  if (sandbox.recovered === undefined) return
  const { promise: aborted, resolve } = Promise.withResolvers<void>()
  const onAbort = (): void => resolve()
  signal?.addEventListener('abort', onAbort, { once: true })
  await Promise.race([within(sandbox.recovered(), RECOVERY_MS), aborted])
  signal?.removeEventListener('abort', onAbort)
}

/** The result of a run that was cancelled before anything was sent. */
export function cancelledBeforeStart(run: PreparedRun, started: number): ExecutionResult {
  const verdict: Verdict = {
    status: 'cancelled',
    errorKind: 'cancelled',
    error: 'the run was cancelled before it started',
    traceback: null,
    ending: { cause: 'cancelled', exitCode: null, signal: null, by: 'host' },
    late: undefined,
  }
  return resultOf(run, new Gathered(run), verdict, started)
}

async function converse(
  run: PreparedRun,
  gathered: Gathered,
  deliver: (event: RunEvent) => Promise<void>,
  hurry: Hurry,
): Promise<{ verdict: Verdict; reusable: boolean }> {
  const { sandbox } = run
  const parting = await new Conversation(run, gathered, deliver, hurry).hold()
  const aborted = run.signal?.aborted === true
  const sandboxEnding = parting.kind === 'closed' ? await within(sandbox.closed, CLOSING_MS) : undefined
  const { kills } = gathered.memory
  const verdict = judge({
    decision: gathered.decision,
    parting,
    mode: run.mode,
    timeoutSec: run.timeoutSec,
    maxOutputBytes: run.maxOutputBytes,
    aborted,
    memoryGrew: kills > 0,
    memoryBytes: sandbox.info.limits.memoryBytes,
    sandboxEnding: sandboxEnding && withoutSecrets(sandboxEnding, gathered),
    warnings: gathered.warnings,
  })
  return { verdict, reusable: isReusable(parting, gathered, kills) }
}

/** More than one memory kill took more than the script's own process with it. */
function isReusable(parting: Parting, gathered: Gathered, kills: number): boolean {
  return (
    parting.kind === 'done' &&
    parting.clean &&
    parting.frame.reusable &&
    gathered.unfinishedFile === undefined &&
    gathered.callbackError === undefined &&
    kills <= 1
  )
}

/** A sandbox that is about to be destroyed keeps what it was given: it is gone the sooner. */
async function hasItsLimit(hurry: Hurry, gathered: Gathered): Promise<boolean> {
  const problem = await hurry.putBack()
  if (problem !== undefined) gathered.warn('cpu_limit_lost', gathered.redactor.text(problem))
  return problem === undefined
}

async function destroy(sandbox: Sandbox, gathered: Gathered): Promise<void> {
  try {
    const gone = await within(
      sandbox.destroy().then(() => true),
      DESTROY_MS,
    )
    if (gone !== true) gathered.warn('destroy_failed', `the sandbox was not gone ${DESTROY_MS} ms after it was ended`)
  } catch (error) {
    gathered.warn('destroy_failed', gathered.redactor.text(`the sandbox could not be destroyed: ${messageOf(error)}`))
  }
}

function resultOf(run: PreparedRun, gathered: Gathered, verdict: Verdict, started: number): ExecutionResult {
  const { decision, intermediates, logs, outputBytes, ignoredFrames } = gathered
  const { late, ...outcome } = verdict
  if (late !== undefined) gathered.warn(late.code, late.message)
  if (gathered.unfinishedFile !== undefined) {
    gathered.warn('file_incomplete', `only a part of ${gathered.redactor.text(gathered.unfinishedFile)} arrived`)
  }
  const report = gathered.report()
  warnOfCalls(gathered)
  const hasResult = decision?.kind === 'result'
  return {
    ...outcome,
    ...report,
    executionId: run.executionId,
    success: hasResult,
    hasResult,
    finalData: hasResult ? decision.data : null,
    intermediates,
    logs,
    outputBytes,
    ignoredFrames,
    warnings: gathered.warnings,
    toolCalls: gathered.toolLog.calls,
    violations: [],
    sandbox: servedBy(run.sandbox, gathered),
    durationMs: Math.round((performance.now() - started) * 1000) / 1000,
    ...(gathered.callbackError === undefined ? {} : { cause: gathered.callbackError.thrown }),
  }
}

function warnOfCalls(gathered: Gathered): void {
  const { leftOut, unanswered } = gathered.toolLog
  if (leftOut > 0) gathered.warn('tool_calls_left_out', `${leftOut} tool calls more were made than are listed`)
  if (unanswered > 0)
    gathered.warn('tool_calls_unanswered', `${unanswered} tool calls were under way when the run ended`)
}

function servedBy({ id, info }: Sandbox, gathered: Gathered): ServedBy {
  const { engine, level, python, limitsEnforced, network } = info
  return { id, engine, level, python, use: gathered.done?.use ?? 0, limitsEnforced, network }
}

/** Engines keep a part of what a sandbox said last. */
function withoutSecrets(ending: Ending, { redactor }: Gathered): Ending {
  return ending.message === undefined
    ? ending
    : { ...ending, message: redactor.text(ending.message, { start: true, end: true }) }
}
