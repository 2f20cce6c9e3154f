import { inspect } from 'node:util'
import { ExecutionMode } from '../executor/index.ts'
import { recordOf, type RunStatus } from '../journal/index.ts'
import { interactive } from './interactive.ts'
import type { Job } from './job.ts'
import { type Leftovers, plan } from './plan.ts'
import { resultOf, type ToolExecutionResult } from './result.ts'
import { RunOver } from './run-over.ts'
import { Session } from './session.ts'

/**
 * Works a job off. Whatever the model, the scripts and the sandboxes do is a value (requirements OR-08, PO-04).
 * @throws only what is a defect.
 */
export async function solve<T>(job: Job<T>, mode: ExecutionMode): Promise<ToolExecutionResult<T>> {
  const session = new Session(job)
  const { journal } = session
  const leftovers: Leftovers = { partial: null }
  started(session, mode)
  let data: unknown = null
  try {
    const answer = await (mode === ExecutionMode.PLAN ? plan : interactive)(session, leftovers)
    data = answer.data
    ended(session, { status: 'completed', error: null, data, partial: null })
  } catch (thrown) {
    if (!(thrown instanceof RunOver)) throw thrown
    ended(session, { status: thrown.status, error: thrown.message, data: null, partial: leftovers.partial })
  } finally {
    session.dispose()
  }
  try {
    await session.assertKept()
  } catch (thrown) {
    // An answer without a record of how it came about is none; this end is the last word of the record.
    const { status, message } = thrown as RunOver
    ended(session, { status, error: message, data: null, partial: data ?? leftovers.partial })
    data = null
  }
  return resultOf(recordOf(journal.events), data as T | null)
}

interface End {
  readonly status: RunStatus
  readonly error: string | null
  readonly data: unknown
  readonly partial: unknown
}

function ended({ journal, spending, elapsedMs }: Session, { status, error, data, partial }: End): void {
  journal.write({
    type: 'run_ended',
    status,
    error,
    final_data: jsonOf(data),
    partial: jsonOf(partial),
    prompt_tokens: spending.promptTokens,
    completion_tokens: spending.completionTokens,
    tool_calls: spending.toolCalls,
    duration_ms: elapsedMs,
  })
}

function started({ job, journal }: Session, mode: ExecutionMode): void {
  const { tokens, toolCalls, wallMs } = job.budget
  journal.write({
    type: 'run_started',
    task: job.task,
    mode,
    sandbox_name: job.ground.sandboxName,
    policy: job.policy,
    trace_id: job.traceId,
    tools: job.tools === undefined ? [] : [...job.tools.tools.keys(), ...job.tools.pythonTools.keys()],
    tools_digest: job.tools?.digest ?? null,
    max_retries: job.maxRetries,
    max_steps: mode === ExecutionMode.PLAN ? null : job.maxSteps,
    budget: { tokens: tokens ?? null, tool_calls: toolCalls ?? null, wall_ms: wallMs ?? null },
  })
}

/** What `output` made of a result may be anything; the journal has it as JSON, or as text where JSON has no form for it. */
function jsonOf(data: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(data) ?? 'null')
  } catch {
    return inspect(data)
  }
}
