import { inspect } from 'node:util'
import { messageOf } from '../errors/index.ts'
import { ExecutionMode, findHostFiles } from '../executor/index.ts'
import { recordOf } from '../journal/index.ts'
import type { TaskStatus } from '../outcomes/index.ts'
import { Attempts } from './attempt.ts'
import { EndTask } from './end-task.ts'
import { solveInSteps } from './interactive.ts'
import type { Job } from './job.ts'
import type { PartialResult } from './partial-result.ts'
import { solveInOneScript } from './plan.ts'
import { publishEvent } from './publish-event.ts'
import { resultOf, type ToolExecutionResult } from './result.ts'
import { ActiveTask } from './active-task.ts'

/**
 * Solves a job. Every outcome of the model, the scripts and the sandboxes is returned.
 * @throws SandglassError `invalid_request` for files of the host that cannot be read; else only for a defect of Sandglass.
 */
export async function solve<T>(job: Job<T>): Promise<ToolExecutionResult<T>> {
  await findHostFiles(job.stagedFiles, job.host.diskBytes)
  const task = new ActiveTask(job)
  const attempts = new Attempts(task)
  const { partial } = attempts
  recordStart(task)
  let end: End
  try {
    const { data } = await (job.mode === ExecutionMode.PLAN ? solveInOneScript : solveInSteps)(attempts)
    // An answer counts only if the journal stored all events before it.
    await task.assertStored()
    end = { status: 'completed', error: null, data }
  } catch (thrown) {
    end = endOf(thrown)
  } finally {
    task.dispose()
  }
  recordEnd(task, end, partial)
  try {
    await task.assertStored()
  } catch (thrown) {
    if (end.status === 'completed') {
      partial.keepResult(end.data)
      end = endOf(thrown)
      recordEnd(task, end, partial)
    }
  }
  const { events } = task.journal
  const last = events.at(-1)
  if (last !== undefined) publishEvent(last, job.traceId)
  if (end.defect !== undefined) throw end.defect
  const answer = end.status === 'completed' ? { data: end.data as T } : undefined
  return resultOf(recordOf(events), answer, task.files.all, task.displays.all)
}

interface End {
  readonly status: TaskStatus
  readonly error: string | null
  /** Null if there is no answer. */
  readonly data: unknown
  /** An unexpected error: it is recorded, and thrown. */
  readonly defect?: Error
}

function endOf(thrown: unknown): End {
  if (thrown instanceof EndTask) return { status: thrown.status, error: thrown.message, data: null }
  const defect = thrown instanceof Error ? thrown : new Error(messageOf(thrown))
  return { status: 'infrastructure', error: `a defect of Sandglass: ${defect.message}`, data: null, defect }
}

function recordEnd({ journal, spending, elapsedMs }: ActiveTask, end: End, partial: PartialResult): void {
  const { status, error, data } = end
  journal.write({
    type: 'run_ended',
    status,
    error,
    final_data: toJson(data),
    partial: status === 'completed' ? null : toJson(partial.best),
    prompt_tokens: spending.promptTokens,
    completion_tokens: spending.completionTokens,
    cost: spending.cost,
    tool_calls: spending.toolCalls,
    duration_ms: elapsedMs,
  })
}

function recordStart({ job, journal }: ActiveTask): void {
  const { tokens, toolCalls, wallMs, cost } = job.budget
  journal.write({
    type: 'run_started',
    task: job.task,
    mode: job.mode,
    sandbox_name: job.host.sandboxName,
    policy: job.policy,
    trace_id: job.traceId,
    tools: job.tools === undefined ? [] : [...job.tools.tools.keys(), ...job.tools.pythonTools.keys()],
    tools_digest: job.tools?.digest ?? null,
    max_retries: job.maxRetries,
    max_steps: job.mode === ExecutionMode.PLAN ? null : job.maxSteps,
    budget: { tokens: tokens ?? null, tool_calls: toolCalls ?? null, wall_ms: wallMs ?? null, cost: cost ?? null },
  })
}

/** Converts a value that `output` returned to JSON, or to text if JSON cannot represent it. */
function toJson(data: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(data) ?? 'null')
  } catch {
    return inspect(data, { customInspect: false })
  }
}
