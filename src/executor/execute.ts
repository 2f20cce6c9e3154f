import { messageOf } from '../errors/index.ts'
import { statusFields } from '../outcomes/index.ts'
import { claim, type Ending, noteCpuTime, type Sandbox } from '../sandbox/index.ts'
import { within } from './bounded.ts'
import { cellEndOf } from './cell-end.ts'
import { Conversation } from './conversation.ts'
import { RunTranscript } from './run-transcript.ts'
import { findHostFiles } from './input-files.ts'
import { CpuBoost } from './cpu-boost.ts'
import type { ConversationEnd } from './conversation-end.ts'
import type { PreparedRun } from './prepare.ts'
import type { ExecutionResult, RunEvent, ServedBy } from './result.ts'
import { assertWebSocketClient } from './tool-endpoint.ts'
import { judge, type Verdict } from './verdict.ts'

/** Time for a sandbox whose channel closed to report its end. */
const CLOSING_MS = 2000
/** Time for a sandbox to recover from its last run; the time limit of the run starts afterwards. */
const RECOVERY_MS = 30_000
/** Time for a sandbox to be destroyed. */
const DESTROY_MS = 2000
const NOT_LEASED = 'the run was cancelled: its lease had been released; keep the lease until the run has settled'

/**
 * Runs a prepared request and leaves the sandbox either fit for the next run or destroyed.
 * @param started `performance.now()` at the call.
 * @throws SandglassError `sandbox_busy`; `invalid_request` for a file of the host; `websocket_client_missing`, `websocket_failed`.
 */
export async function execute(
  given: PreparedRun,
  started: number,
  deliver: (event: RunEvent) => Promise<void>,
): Promise<ExecutionResult> {
  const claimed = claim(given.sandbox)
  const { revoked } = claimed
  const signal = given.signal === undefined ? revoked : AbortSignal.any([given.signal, revoked])
  const run = { ...given, signal }
  try {
    await findHostFiles(run.files, run.sandbox.info.limits.diskBytes)
    if (run.endpoint !== undefined) await assertWebSocketClient()
  } catch (error) {
    // Nothing was sent, so the sandbox is unchanged.
    claimed.free()
    throw error
  }
  try {
    await waitUntilRecovered(run)
    if (signal.aborted) return addMisuse(cancelledBeforeStart(run, started), revoked)
    const transcript = new RunTranscript(run)
    const boost = new CpuBoost(run.sandbox)
    await boost.lower(run.fewerCpus)
    if (signal.aborted) {
      if (!(await restoreLimit(boost, transcript))) await destroy(run.sandbox, transcript)
      return addMisuse(cancelledBeforeStart(run, started), revoked)
    }
    const { verdict, reusable, hasBegun } = await converse(run, transcript, deliver, boost)
    if (hasBegun) noteCpuTime(run.sandbox, transcript.done)
    if (transcript.done?.imported !== undefined) run.onImports?.(transcript.done.imported)
    if (hasBegun) run.cell?.onEnd(cellEndOf(transcript))
    if (!reusable || !(await restoreLimit(boost, transcript))) await destroy(run.sandbox, transcript)
    return addMisuse(resultOf(run, transcript, verdict, started), revoked)
  } catch (error) {
    // A file could not be read, or Sandglass has a defect: the state of the sandbox is unknown.
    noteCpuTime(run.sandbox, undefined)
    await within(run.sandbox.destroy(), DESTROY_MS).catch(() => undefined)
    throw error
  } finally {
    claimed.free()
  }
}

/** Adds the cause if the caller released the lease while the run continued. */
function addMisuse(result: ExecutionResult, revoked: AbortSignal): ExecutionResult {
  if (!revoked.aborted) return result
  const warnings = [...result.warnings, { code: 'lease_released', message: NOT_LEASED, traceback: null } as const]
  return result.status === 'cancelled' ? { ...result, error: NOT_LEASED, warnings } : { ...result, warnings }
}

/**
 * Waits for a sandbox that prepares itself for each run, until the run is cancelled or {@link RECOVERY_MS} are over. Then the
 * request is sent all the same, and the rest of the recovery counts towards the time in which the host expects an answer.
 */
async function waitUntilRecovered({ sandbox, signal, cell }: PreparedRun): Promise<void> {
  if (sandbox.recovered === undefined || cell !== undefined) return // the process of a session needs no recovery
  const { promise: aborted, resolve } = Promise.withResolvers<void>()
  const onAbort = (): void => resolve()
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted === true) onAbort() // while the files were looked up
  await Promise.race([within(sandbox.recovered(), RECOVERY_MS), aborted])
  signal?.removeEventListener('abort', onAbort)
}

/** The result of a run that was cancelled before anything was sent. */
export function cancelledBeforeStart(run: PreparedRun, started: number): ExecutionResult {
  const verdict: Verdict = {
    ...statusFields('cancelled'),
    error: 'the run was cancelled before it started',
    setupFailed: false,
    traceback: null,
    ending: { cause: 'cancelled', exitCode: null, signal: null, by: 'host' },
    late: undefined,
  }
  return resultOf(run, new RunTranscript(run), verdict, started)
}

async function converse(
  run: PreparedRun,
  transcript: RunTranscript,
  deliver: (event: RunEvent) => Promise<void>,
  boost: CpuBoost,
): Promise<{ verdict: Verdict; reusable: boolean; hasBegun: boolean }> {
  const { sandbox } = run
  const conversation = new Conversation(run, transcript, deliver, boost)
  const end = await conversation.hold()
  const aborted = run.signal?.aborted === true
  const sandboxEnding = end.kind === 'closed' ? await within(sandbox.closed, CLOSING_MS) : undefined
  const { kills } = transcript.memory
  const verdict = judge({
    decision: transcript.decision,
    end,
    mode: run.mode,
    timeoutSec: run.timeoutSec,
    maxOutputBytes: run.maxOutputBytes,
    aborted,
    hadMemoryKill: kills > 0,
    memoryBytes: sandbox.info.limits.memoryBytes,
    sandboxEnding: sandboxEnding && redactEnding(sandboxEnding, transcript),
    warnings: transcript.warnings,
  })
  return { verdict, reusable: isReusable(end, transcript, kills), hasBegun: conversation.hasBegun }
}

/** After more than one OOM kill, a process other than the script's own may be gone. */
function isReusable(end: ConversationEnd, transcript: RunTranscript, kills: number): boolean {
  return (
    end.kind === 'done' &&
    end.clean &&
    end.frame.reusable &&
    transcript.unfinishedFile === undefined &&
    transcript.callbackError === undefined &&
    kills <= 1
  )
}

/**
 * Restores the CPU limit of a sandbox that stays in use. A sandbox that is about to be destroyed ends faster without the limit.
 * @returns whether the sandbox has its limit again.
 */
async function restoreLimit(boost: CpuBoost, transcript: RunTranscript): Promise<boolean> {
  const problem = await boost.restore()
  if (problem !== undefined) transcript.warn('cpu_limit_lost', transcript.redactor.text(problem))
  return problem === undefined
}

async function destroy(sandbox: Sandbox, transcript: RunTranscript): Promise<void> {
  try {
    const gone = await within(
      sandbox.destroy().then(() => true),
      DESTROY_MS,
    )
    if (gone !== true) transcript.warn('destroy_failed', `the sandbox was not destroyed within ${DESTROY_MS} ms`)
  } catch (error) {
    transcript.warn(
      'destroy_failed',
      transcript.redactor.text(`the sandbox could not be destroyed: ${messageOf(error)}`),
    )
  }
}

function resultOf(run: PreparedRun, transcript: RunTranscript, verdict: Verdict, started: number): ExecutionResult {
  const { decision, intermediates, logs, outputBytes, ignoredFrames } = transcript
  const { late, ...outcome } = verdict
  if (late !== undefined) transcript.warn(late.code, late.message)
  if (transcript.unfinishedFile !== undefined) {
    transcript.warn('file_incomplete', `only a part of ${transcript.redactor.text(transcript.unfinishedFile)} arrived`)
  }
  const report = transcript.report()
  if (transcript.nanNulls.message !== undefined) transcript.warn('nan_as_null', transcript.nanNulls.message)
  warnOfCalls(transcript)
  return {
    ...outcome,
    ...report,
    executionId: run.executionId,
    ...(decision?.kind === 'result'
      ? { success: true, hasResult: true, finalData: decision.data }
      : { success: false, hasResult: false, finalData: null }),
    intermediates,
    displays: transcript.displays.all,
    logs,
    outputBytes,
    ignoredFrames,
    warnings: transcript.warnings,
    toolCalls: transcript.toolLog.calls,
    violations: [],
    sandbox: describeSandbox(run.sandbox, transcript),
    environment: null,
    durationMs: Math.round((performance.now() - started) * 1000) / 1000,
    ...(transcript.callbackError === undefined ? {} : { cause: transcript.callbackError.thrown }),
  }
}

function warnOfCalls(transcript: RunTranscript): void {
  const { leftOut, unanswered } = transcript.toolLog
  if (leftOut > 0) transcript.warn('tool_calls_left_out', `${leftOut} more tool calls were made than are listed`)
  if (unanswered > 0)
    transcript.warn('tool_calls_unanswered', `${unanswered} tool calls were under way when the run ended`)
}

function describeSandbox({ id, info }: Sandbox, transcript: RunTranscript): ServedBy {
  const { engine, level, python, limitsEnforced, network } = info
  return { id, engine, level, python, use: transcript.done?.use ?? 0, limitsEnforced, network }
}

/** Redacts the message of an ending. It holds a part of the sandbox's last output, which may be cut at either end. */
function redactEnding(ending: Ending, { redactor }: RunTranscript): Ending {
  return ending.message === undefined
    ? ending
    : { ...ending, message: redactor.text(ending.message, { start: true, end: true }) }
}
