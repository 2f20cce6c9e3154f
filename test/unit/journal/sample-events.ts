import type { JournalBody, JournalEvent } from '../../../src/journal/index.ts'

/** The id of a run that began at a second of 2026-01-02, UTC. */
export function runIdAt(second: number, random: string = '0123abcd'): string {
  return `20260102T0304${String(second).padStart(2, '0')}000-${random}`
}

/** Makes events from bodies as a journal does: numbered, with times one second apart. */
export function eventsOf(runId: string, bodies: readonly JournalBody[]): JournalEvent[] {
  return bodies.map((body, seq) => ({
    v: 1,
    run_id: runId,
    seq,
    at: new Date(Date.UTC(2026, 0, 2, 3, 4, seq)).toISOString(),
    ...body,
  }))
}

/** The first attempt in PLAN mode. */
export const PLACE = { step: null, attempt: 1 } as const

/** A violation as a check finds it. */
export const VIOLATION = { code: 'unknown_name', line: 1, column: 4, message: 'no prise', hint: 'price' } as const

type BodyOf<T extends JournalBody['type']> = Extract<JournalBody, { readonly type: T }>

export function runStarted(fields: Partial<BodyOf<'run_started'>> = {}): BodyOf<'run_started'> {
  return {
    type: 'run_started',
    task: 'Add up',
    mode: 'plan',
    sandbox_name: 'default',
    policy: 'strict',
    trace_id: 't1',
    tools: ['price'],
    tools_digest: null,
    max_retries: 3,
    max_steps: null,
    budget: { tokens: null, tool_calls: null, wall_ms: null },
    ...fields,
  }
}

export function scriptGenerated(fields: Partial<BodyOf<'script_generated'>> = {}): BodyOf<'script_generated'> {
  return {
    type: 'script_generated',
    step: null,
    attempt: 1,
    model: 'm',
    prompt_tokens: 10,
    completion_tokens: 2,
    latency_ms: 5,
    answer_chars: 20,
    script: 'emit_result(1)',
    script_digest: 'd',
    answer: null,
    ...fields,
  }
}

/** The answer to the first call of `price` in line 1. */
export function toolAnswered(fields: Partial<BodyOf<'tool_answered'>> = {}): BodyOf<'tool_answered'> {
  return {
    type: 'tool_answered',
    ...PLACE,
    key: 'L1#1',
    name: 'price',
    ok: true,
    ms: 1,
    result_json: '1',
    result_chars: 1,
    error: null,
    ...fields,
  }
}

export function scriptExecuted(fields: Partial<BodyOf<'script_executed'>> = {}): BodyOf<'script_executed'> {
  return {
    type: 'script_executed',
    step: null,
    attempt: 1,
    status: 'completed',
    error_kind: null,
    error: null,
    traceback: null,
    has_result: true,
    final_data: 1,
    stdout: '',
    stderr: '',
    warnings: [],
    tool_calls: 0,
    duration_ms: 4,
    sandbox: {
      id: 's1',
      engine: 'local',
      level: 'kernel',
      python: '3.12.0',
      use: 1,
      limits_enforced: ['memory'],
      network: 'none',
    },
    ending: { cause: 'exit', exit_code: 0, signal: null },
    ...fields,
  }
}

export function attemptEnded(fields: Partial<BodyOf<'attempt_ended'>> = {}): BodyOf<'attempt_ended'> {
  return {
    type: 'attempt_ended',
    step: null,
    attempt: 1,
    status: 'completed',
    error: null,
    repetition: null,
    duration_ms: 9,
    ...fields,
  }
}

export function runEnded(fields: Partial<BodyOf<'run_ended'>> = {}): BodyOf<'run_ended'> {
  return {
    type: 'run_ended',
    status: 'completed',
    error: null,
    final_data: 1,
    partial: null,
    prompt_tokens: 10,
    completion_tokens: 2,
    tool_calls: 0,
    duration_ms: 12,
    ...fields,
  }
}

/** A complete successful run. */
export function wholeRun(runId: string): JournalEvent[] {
  return eventsOf(runId, [runStarted(), scriptGenerated(), scriptExecuted(), attemptEnded(), runEnded()])
}
