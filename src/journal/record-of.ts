import type { AttemptStatus, JournalEvent, JournalSandbox } from './events.ts'
import type { AttemptRecord, ReviewRecord, RunRecord, SandboxRecord, StepRecord, ToolCallRecord } from './record.ts'
import { isSound, soundStart } from './sound-events.ts'

type Draft<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer Item)[] ? Item[] : T[K] }
type AttemptDraft = Omit<Draft<AttemptRecord>, 'toolCalls' | 'reviews'> & {
  toolCalls: Draft<ToolCallRecord>[]
  reviews: Draft<ReviewRecord>[]
}
type StepDraft = Omit<Draft<StepRecord>, 'attempts'> & { attempts: AttemptDraft[] }

/**
 * Builds a record from the events of one task, even if the task has no end. Damaged events are ignored.
 * @throws TypeError if the first event is not `run_started`.
 */
export function recordOf(events: readonly JournalEvent[]): RunRecord {
  const first = soundStart(events[0])
  if (first === undefined)
    throw new TypeError('these events are not the journal of a task, which begins with run_started')
  const fold = new Fold()
  for (const event of events) if (isSound(event)) fold.take(event)
  const { attempts, steps, end } = fold
  const all = [...attempts, ...steps.flatMap((step) => step.attempts)]
  const sum = (of: (attempt: AttemptRecord) => number | null | undefined): number =>
    all.reduce((total, attempt) => total + (of(attempt) ?? 0), 0)
  const models = all.map(({ generation }) => generation?.model).filter((model) => typeof model === 'string')
  return {
    runId: first.run_id,
    traceId: first.trace_id,
    task: first.task,
    mode: first.mode,
    sandboxName: first.sandbox_name,
    policy: first.policy,
    tools: first.tools,
    maxRetries: first.max_retries,
    maxSteps: first.max_steps,
    budget: {
      tokens: first.budget.tokens,
      toolCalls: first.budget.tool_calls,
      wallMs: first.budget.wall_ms,
      cost: first.budget.cost ?? null,
    },
    status: end?.status ?? 'unfinished',
    success: end?.status === 'completed',
    error:
      end === undefined ? 'the journal has no end: the process ended early, or the task is still going' : end.error,
    finalData: end?.final_data ?? null,
    partial: end?.partial ?? null,
    attempts,
    steps,
    models: [...new Set(models)],
    totalPromptTokens: end?.prompt_tokens ?? sum(({ generation }) => generation?.promptTokens),
    totalCompletionTokens: end?.completion_tokens ?? sum(({ generation }) => generation?.completionTokens),
    cost: end === undefined ? costSoFar(all) : (end.cost ?? null),
    totalToolCalls: end?.tool_calls ?? sum(({ toolCalls }) => toolCalls.length),
    startedAt: first.at,
    durationMs: end?.duration_ms ?? msBetween(first.at, events.at(-1)?.at),
    lastTraceback: () => all.findLast(({ traceback }) => traceback !== null)?.traceback ?? null,
  }
}

/** The cost of a task without an end. */
function costSoFar(attempts: readonly AttemptDraft[]): number | null {
  const costs = attempts.flatMap(({ generation, cost }) => (generation === null ? [] : [cost]))
  if (costs.length === 0 || costs.includes(null)) return null
  return costs.reduce<number>((total, cost) => total + (cost ?? 0), 0)
}

/** The time between two timestamps in milliseconds; zero if one is invalid. */
function msBetween(start: string, end: string | undefined): number {
  const ms = Date.parse(end ?? start) - Date.parse(start)
  return Number.isFinite(ms) ? ms : 0
}

/** An attempt, and indexes of the calls and reviews to which later events refer, because a stored journal may hold any number of them. */
interface OpenAttempt {
  readonly draft: AttemptDraft
  /** Calls without an answer, by key and name. */
  readonly calls: Map<string, Draft<ToolCallRecord>[]>
  /** The last review of each proposal. */
  readonly reviews: Map<string, Draft<ReviewRecord>>
}

interface OpenStep {
  readonly draft: StepDraft
  readonly attempts: Map<number, OpenAttempt>
}

/** Gathers events into attempts and steps. */
class Fold {
  readonly attempts: AttemptDraft[] = []
  readonly steps: StepDraft[] = []
  end: Extract<JournalEvent, { type: 'run_ended' }> | undefined
  readonly #openAttempts = new Map<number, OpenAttempt>()
  readonly #openSteps = new Map<number, OpenStep>()

  take(event: JournalEvent): void {
    switch (event.type) {
      case 'run_started':
        return
      case 'run_ended':
        this.end = event
        return
      case 'step_started':
        this.#step(event.step).draft.forceFinish = event.force_finish
        return
      case 'step_ended':
        Object.assign(this.#step(event.step).draft, { ok: event.ok, error: event.error })
        return
      default:
        foldInto(this.#attempt(event.step, event.attempt), event)
    }
  }

  #step(number: number): OpenStep {
    const known = this.#openSteps.get(number)
    if (known !== undefined) return known
    const draft: StepDraft = { number, forceFinish: false, ok: null, error: null, attempts: [] }
    this.steps.push(draft)
    const step: OpenStep = { draft, attempts: new Map() }
    this.#openSteps.set(number, step)
    return step
  }

  #attempt(step: number | null, number: number): OpenAttempt {
    const within = step === null ? undefined : this.#step(step)
    const open = within?.attempts ?? this.#openAttempts
    const known = open.get(number)
    if (known !== undefined) return known
    const attempt: OpenAttempt = { draft: emptyAttempt(number), calls: new Map(), reviews: new Map() }
    const attempts = within?.draft.attempts ?? this.attempts
    attempts.push(attempt.draft)
    open.set(number, attempt)
    return attempt
  }
}

type AttemptEvent = Extract<JournalEvent, { readonly attempt: number }>

function foldInto(open: OpenAttempt, event: AttemptEvent): void {
  const { draft: attempt } = open
  switch (event.type) {
    case 'script_proposed':
    case 'proposal_decided':
      return takeReview(open, event)
    case 'tool_called':
    case 'approval_requested':
    case 'approval_decided':
    case 'tool_answered':
      return takeCall(open, event)
    case 'script_executed':
      return foldEnd(attempt, event)
    case 'prompt_written':
      attempt.prompt = { digest: event.digest, chars: event.chars, text: event.text }
      return
    case 'script_generated': {
      const { model, prompt_tokens: promptTokens, completion_tokens: completionTokens, answer } = event
      const cachedPromptTokens = event.cached_prompt_tokens ?? null
      attempt.generation = {
        model,
        promptTokens,
        cachedPromptTokens,
        completionTokens,
        latencyMs: event.latency_ms,
        answer,
      }
      attempt.cost = event.cost ?? null
      attempt.script = event.script
      return
    }
    case 'script_checked':
      attempt.violations = [...event.violations]
      return
    case 'sandbox_assigned':
      return
    case 'script_rerun':
      attempt.rerun = event.reason
      attempt.intermediates = []
      attempt.displays = []
      return
    case 'intermediate':
      attempt.intermediates.push({ label: event.label, data: event.data })
      return
    case 'display':
      attempt.displays.push({ data: event.data, leftOut: event.left_out })
      return
    case 'log':
      attempt.logs.push({ level: event.level, message: event.message })
      return
    case 'stagnation_found':
      attempt.repetition = event.repetition
      return
    case 'attempt_ended':
      attempt.status = event.status
      attempt.error = event.error
      attempt.repetition = event.repetition ?? attempt.repetition
      attempt.durationMs = event.duration_ms
  }
}

type EventOf<T extends AttemptEvent['type']> = Extract<AttemptEvent, { readonly type: T }>

function takeReview(
  { draft: attempt, reviews }: OpenAttempt,
  event: EventOf<'script_proposed' | 'proposal_decided'>,
): void {
  switch (event.type) {
    case 'script_proposed': {
      const { proposal_id: proposalId, plan, script, sha256, dependencies, tools, problem, at: proposedAt } = event
      const { limits_enforced: limitsEnforced, ...sandbox } = event.sandbox
      const review: Draft<ReviewRecord> = {
        proposalId,
        plan,
        script,
        sha256,
        dependencies: [...dependencies],
        tools: [...tools],
        sandbox: { ...sandbox, limitsEnforced },
        problem,
        proposedAt,
        decision: null,
      }
      attempt.reviews.push(review)
      reviews.set(proposalId, review)
      return
    }
    case 'proposal_decided': {
      const { decision, by, text, script, at: decidedAt, waited_ms: waitedMs } = event
      const review = reviews.get(event.proposal_id)
      if (review === undefined) return
      review.decision = { decision, by, text, script, decidedAt, waitedMs }
      // A script of the reviewer with a mistake did not run: the next decision is again about the script of the model.
      attempt.script = script ?? review.script
      return
    }
  }
}

function takeCall(
  { draft: attempt, calls }: OpenAttempt,
  event: EventOf<'tool_called' | 'approval_requested' | 'approval_decided' | 'tool_answered'>,
): void {
  switch (event.type) {
    case 'tool_called': {
      const { key, line, name, effect, args } = event
      const call = { key, line, name, effect, args, ok: null, ms: null, resultJson: null, error: null }
      attempt.toolCalls.push(call)
      const open = calls.get(callId(event))
      if (open === undefined) calls.set(callId(event), [call])
      else open.push(call)
      return
    }
    case 'approval_requested': {
      const call = calls.get(callId(event))?.at(-1)
      const nothing = { approved: null, reason: null, by: null, args: null, decidedAt: null, waitedMs: null }
      if (call !== undefined) Object.assign(call, { approval: nothing })
      return
    }
    case 'approval_decided': {
      const { approved, reason, by, args, at: decidedAt, waited_ms: waitedMs } = event
      const call = calls.get(callId(event))?.at(-1)
      if (call !== undefined) Object.assign(call, { approval: { approved, reason, by, args, decidedAt, waitedMs } })
      return
    }
    case 'tool_answered': {
      const call = calls.get(callId(event))?.pop()
      if (call === undefined) return
      Object.assign(call, { ok: event.ok, ms: event.ms, resultJson: event.result_json, error: event.error })
      return
    }
  }
}

function foldEnd(attempt: AttemptDraft, event: EventOf<'script_executed'>): void {
  attempt.status = event.status as AttemptStatus
  attempt.error = event.error
  attempt.traceback = event.traceback
  attempt.hasResult = event.has_result
  attempt.finalData = event.final_data
  attempt.stdout = event.stdout
  attempt.stderr = event.stderr
  attempt.warnings = [...event.warnings]
  attempt.files = [...(event.files ?? [])]
  if (event.cell !== undefined) attempt.cell = event.cell
  attempt.sandbox = sandboxOf(event.sandbox)
  attempt.executionMs = event.duration_ms
}

function callId({ key, name }: { readonly key: string; readonly name: string }): string {
  return `${name}\n${key}`
}

function sandboxOf({ limits_enforced: limitsEnforced, ...sandbox }: JournalSandbox): SandboxRecord {
  return { ...sandbox, limitsEnforced }
}

function emptyAttempt(number: number): AttemptDraft {
  return {
    number,
    status: null,
    error: null,
    traceback: null,
    prompt: null,
    generation: null,
    cost: null,
    script: null,
    reviews: [],
    violations: [],
    hasResult: false,
    finalData: null,
    intermediates: [],
    displays: [],
    logs: [],
    toolCalls: [],
    stdout: '',
    stderr: '',
    warnings: [],
    files: [],
    sandbox: null,
    executionMs: null,
    durationMs: null,
    repetition: null,
    rerun: null,
  }
}
