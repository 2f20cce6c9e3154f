import type { Violation } from '../executor/index.ts'
import type { AttemptStatus, CellFacts, FileFacts, JournalEvent, JournalSandbox, Repetition } from './events.ts'
import type { TaskStatus } from '../outcomes/index.ts'
import { isSound, soundStart } from './sound-events.ts'

/** One call of a host tool. */
export interface ToolCallRecord {
  /** Call site and ordinal: `L12#3` is the third call of this tool in line 12. */
  readonly key: string
  readonly line: number | null
  readonly name: string
  readonly effect: string | null
  readonly args: unknown
  /** Null while the call has no answer. */
  readonly ok: boolean | null
  readonly ms: number | null
  /** JSON text, or its head where it is long. */
  readonly resultJson: string | null
  readonly error: { readonly code: string; readonly message: string } | null
  /** Absent for a call that needed no approval. */
  readonly approval?: {
    /** Null while nobody has decided; then the fields below are null, too. */
    readonly approved: boolean | null
    readonly reason: string | null
    readonly by: string | null
    /** The arguments with which the tool executed in place of `args`, or null. */
    readonly args: unknown
    /** ISO 8601, UTC. */
    readonly decidedAt: string | null
    readonly waitedMs: number | null
  }
}

/** The model call behind a script, with its cost. */
export interface GenerationRecord {
  readonly model: string | null
  readonly promptTokens: number | null
  /** Of these, the tokens from the provider's cache. */
  readonly cachedPromptTokens: number | null
  readonly completionTokens: number | null
  readonly latencyMs: number
  /** The head of an answer without a script. */
  readonly answer: string | null
}

/** The sandbox that ran a script, with the limits in force there. */
export interface SandboxRecord {
  readonly id: string
  readonly engine: string
  readonly level: string
  readonly python: string
  /** The number of scripts that it had run, this one included. */
  readonly use: number
  readonly limitsEnforced: readonly string[]
  readonly network: string
}

/** A script that was proposed to a reviewer, and the answer. */
interface ReviewRecord {
  readonly proposalId: string
  readonly plan: string
  readonly script: string
  /** Of the script; null if it holds a secret. */
  readonly sha256: string | null
  readonly dependencies: readonly string[]
  readonly tools: readonly { readonly name: string; readonly effect: string | null }[]
  readonly sandbox: Omit<SandboxRecord, 'id' | 'use'>
  /** The mistakes of the script in the last decision, or null. */
  readonly problem: string | null
  /** ISO 8601, UTC. */
  readonly proposedAt: string
  /** Null while nobody has decided. */
  readonly decision: {
    readonly decision: string
    readonly by: string | null
    /** The message to the model, or null. */
    readonly text: string | null
    /** The script of the reviewer, or null. */
    readonly script: string | null
    readonly decidedAt: string
    readonly waitedMs: number
  } | null
}

/** One attempt: the model call, the script and its outcome. */
export interface AttemptRecord {
  /** From 1, within its task or its step. */
  readonly number: number
  /** Null while the attempt has no end. */
  readonly status: AttemptStatus | null
  readonly error: string | null
  readonly traceback: string | null
  readonly prompt: { readonly digest: string; readonly chars: number; readonly text: string | null } | null
  readonly generation: GenerationRecord | null
  /** Of the model call, by `pricing`; null if it is not known. */
  readonly cost: number | null
  /** The script of the model, or of the reviewer who replaced it. */
  readonly script: string | null
  /** The proposals to a reviewer and the decisions; empty if there is none. */
  readonly reviews: readonly ReviewRecord[]
  readonly violations: readonly Violation[]
  readonly hasResult: boolean
  readonly finalData: unknown
  readonly intermediates: readonly { readonly label: string; readonly data: unknown }[]
  /** The values that the script showed, by MIME type. The journal leaves out large parts. */
  readonly displays: readonly { readonly data: Readonly<Record<string, string>>; readonly leftOut: readonly string[] }[]
  readonly logs: readonly { readonly level: string; readonly message: string }[]
  readonly toolCalls: readonly ToolCallRecord[]
  readonly stdout: string
  readonly stderr: string
  readonly warnings: readonly { readonly code: string; readonly message: string }[]
  /** The files that `collect` asked for, without their content. */
  readonly files: readonly FileFacts[]
  /** Absent unless the script ran as a cell of a session. */
  readonly cell?: CellFacts
  /** Null if the script did not run. */
  readonly sandbox: SandboxRecord | null
  /** Of the script alone, in milliseconds. */
  readonly executionMs: number | null
  readonly durationMs: number | null
  readonly repetition: Repetition | null
  /** Why the script ran a second time, or null: the first sandbox was lost. `toolCalls` and `logs` are those of both. */
  readonly rerun: string | null
}

/** A step of INTERACTIVE mode. */
export interface StepRecord {
  /** From 1. */
  readonly number: number
  /** True if the step had to output the answer. */
  readonly forceFinish: boolean
  readonly ok: boolean | null
  readonly error: string | null
  readonly attempts: readonly AttemptRecord[]
}

/** Everything about one task: a view of its journal. */
export interface RunRecord {
  readonly runId: string
  readonly traceId: string | null
  readonly task: string
  readonly mode: 'plan' | 'interactive'
  readonly sandboxName: string
  readonly policy: string
  readonly tools: readonly string[]
  readonly maxRetries: number
  readonly maxSteps: number | null
  /** Null if nothing bounds it. */
  readonly budget: {
    readonly tokens: number | null
    readonly toolCalls: number | null
    readonly wallMs: number | null
    readonly cost: number | null
  }
  readonly status: TaskStatus
  readonly success: boolean
  readonly error: string | null
  readonly finalData: unknown
  /** The best data of a task that ended without an answer. */
  readonly partial: unknown
  /** PLAN mode. */
  readonly attempts: readonly AttemptRecord[]
  /** INTERACTIVE mode. */
  readonly steps: readonly StepRecord[]
  readonly models: readonly string[]
  readonly totalPromptTokens: number
  readonly totalCompletionTokens: number
  /** Of all model calls, by `pricing`; null if that of one is not known. */
  readonly cost: number | null
  readonly totalToolCalls: number
  /** ISO 8601, UTC. */
  readonly startedAt: string
  /** For a task without an end: the time until its last event. */
  readonly durationMs: number
  /** The traceback of the newest attempt that has one, or null. */
  lastTraceback(): string | null
}

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

/** Zero if one of the times is invalid. */
function msBetween(start: string, end: string | undefined): number {
  const ms = Date.parse(end ?? start) - Date.parse(start)
  return Number.isFinite(ms) ? ms : 0
}

/** An attempt, and what later events of it refer to. Nothing is searched for: a stored journal may hold any number of each. */
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
        takeInto(this.#attempt(event.step, event.attempt), event)
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

function takeInto({ draft: attempt, calls, reviews }: OpenAttempt, event: AttemptEvent): void {
  switch (event.type) {
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
      // A script of the reviewer that had a mistake did not run: the next decision is about the one of the model again.
      attempt.script = script ?? review.script
      return
    }
    case 'sandbox_assigned':
      return
    case 'script_rerun':
      attempt.rerun = event.reason
      attempt.intermediates = []
      attempt.displays = []
      return
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
    case 'intermediate':
      attempt.intermediates.push({ label: event.label, data: event.data })
      return
    case 'display':
      attempt.displays.push({ data: event.data, leftOut: event.left_out })
      return
    case 'log':
      attempt.logs.push({ level: event.level, message: event.message })
      return
    case 'script_executed':
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
