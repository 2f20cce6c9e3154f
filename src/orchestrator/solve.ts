import { inspect } from 'node:util'
import { messageOf } from '../errors/index.ts'
import { ExecutionMode } from '../executor/index.ts'
import { recordOf, type RunStatus } from '../journal/index.ts'
import { interactive } from './interactive.ts'
import type { Job } from './job.ts'
import { Leftovers } from './leftovers.ts'
import { plan } from './plan.ts'
import { resultOf, type ToolExecutionResult } from './result.ts'
import { RunOver } from './run-over.ts'
import { Session } from './session.ts'
import { tell } from './tell.ts'

/**
 * Works a job off. Whatever the model, the scripts and the sandboxes do is a value (requirements OR-08, PO-04).
 * @throws only what is a defect.
 */
export async function solve<T>(job: Job<T>): Promise<ToolExecutionResult<T>> {
  const session = new Session(job)
  const { journal } = session
  const leftovers = new Leftovers()
  started(session)
  let end: End
  try {
    const { data } = await (job.mode === ExecutionMode.PLAN ? plan : interactive)(session, leftovers)
    // An answer without a record of how it came about is none.
    await session.assertKept()
    end = { status: 'completed', error: null, data }
  } catch (thrown) {
    end = endOf(thrown)
  } finally {
    session.dispose()
  }
  ended(session, end, leftovers)
  try {
    await session.assertKept()
  } catch (thrown) {
    if (end.status === 'completed') {
      leftovers.keepResult(end.data)
      end = endOf(thrown)
      ended(session, end, leftovers)
    }
  }
  const last = journal.events.at(-1)
  if (last !== undefined) tell(last, job.traceId)
  if (end.defect !== undefined) throw end.defect
  return resultOf(recordOf(journal.events), end.data as T | null)
}

interface End {
  readonly status: RunStatus
  readonly error: string | null
  /** Null where there is no answer. */
  readonly data: unknown
  /** What is no end of a run: told in the record, and thrown. */
  readonly defect?: Error
}

function endOf(thrown: unknown): End {
  if (thrown instanceof RunOver) return { status: thrown.status, error: thrown.message, data: null }
  const defect = thrown instanceof Error ? thrown : new Error(messageOf(thrown))
  return { status: 'infrastructure', error: `a defect of Sandglass: ${defect.message}`, data: null, defect }
}

function ended({ journal, spending, elapsedMs }: Session, { status, error, data }: End, { best }: Leftovers): void {
  journal.write({
    type: 'run_ended',
    status,
    error,
    final_data: jsonOf(data),
    partial: status === 'completed' ? null : jsonOf(best),
    prompt_tokens: spending.promptTokens,
    completion_tokens: spending.completionTokens,
    tool_calls: spending.toolCalls,
    duration_ms: elapsedMs,
  })
}

function started({ job, journal }: Session): void {
  const { tokens, toolCalls, wallMs } = job.budget
  journal.write({
    type: 'run_started',
    task: job.task,
    mode: job.mode,
    sandbox_name: job.ground.sandboxName,
    policy: job.policy,
    trace_id: job.traceId,
    tools: job.tools === undefined ? [] : [...job.tools.tools.keys(), ...job.tools.pythonTools.keys()],
    tools_digest: job.tools?.digest ?? null,
    max_retries: job.maxRetries,
    max_steps: job.mode === ExecutionMode.PLAN ? null : job.maxSteps,
    budget: { tokens: tokens ?? null, tool_calls: toolCalls ?? null, wall_ms: wallMs ?? null },
  })
}

/** What `output` made of a result may be anything; the journal has it as JSON, or as text where JSON has no form for it. */
function jsonOf(data: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(data) ?? 'null')
  } catch {
    return inspect(data, { customInspect: false })
  }
}
