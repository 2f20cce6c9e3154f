import type { JournalEvent } from '../journal/index.ts'

/** Whether a value is what a field must hold. */
type Check = (value: unknown) => boolean
type Shape = Readonly<Record<string, Check>>

const text: Check = (value) => typeof value === 'string'
const number: Check = (value) => typeof value === 'number'
const flag: Check = (value) => typeof value === 'boolean'
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value)
const shaped =
  (shape: Shape): Check =>
  (value) =>
    typeof value === 'object' && value !== null && holds(value, shape)
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)

const PLACE: Shape = { step: orNull(number), attempt: number }
const problem = orNull(shaped({ code: text, message: text }))
const violation = shaped({ code: text, line: number, column: number, message: text, hint: text })
const sandbox = shaped({
  id: text,
  engine: text,
  level: text,
  python: text,
  use: number,
  limits_enforced: listOf(text),
  network: text,
})

/** The fields of each event that a record is read from. */
const SHAPES: Readonly<Record<JournalEvent['type'], Shape>> = {
  run_started: {
    task: text,
    mode: (value) => value === 'plan' || value === 'interactive',
    sandbox_name: text,
    policy: text,
    trace_id: orNull(text),
    tools: listOf(text),
    max_retries: number,
    max_steps: orNull(number),
    budget: shaped({ tokens: orNull(number), tool_calls: orNull(number), wall_ms: orNull(number) }),
  },
  step_started: { step: number, force_finish: flag },
  prompt_written: { ...PLACE, digest: text, chars: number, text: orNull(text) },
  script_generated: {
    ...PLACE,
    model: orNull(text),
    prompt_tokens: orNull(number),
    completion_tokens: orNull(number),
    latency_ms: number,
    script: orNull(text),
    answer: orNull(text),
  },
  script_checked: { ...PLACE, ok: flag, violations: listOf(violation), ms: number },
  sandbox_assigned: PLACE,
  tool_called: { ...PLACE, key: text, line: orNull(number), name: text, effect: orNull(text) },
  tool_answered: { ...PLACE, key: text, name: text, ok: flag, ms: number, result_json: orNull(text), error: problem },
  intermediate: { ...PLACE, label: text },
  log: { ...PLACE, level: text, message: text },
  script_executed: {
    ...PLACE,
    status: text,
    error: orNull(text),
    traceback: orNull(text),
    has_result: flag,
    stdout: text,
    stderr: text,
    warnings: listOf(shaped({ code: text, message: text })),
    duration_ms: number,
    sandbox,
  },
  attempt_ended: { ...PLACE, status: text, error: orNull(text), repetition: orNull(text), duration_ms: number },
  stagnation_found: { ...PLACE, repetition: text },
  step_ended: { step: number, ok: flag, error: orNull(text) },
  run_ended: {
    status: text,
    error: orNull(text),
    prompt_tokens: number,
    completion_tokens: number,
    tool_calls: number,
    duration_ms: number,
  },
}

/**
 * The events of a stored journal that hold what they must: a journal is a file that anything may have happened to, and
 * what reads it further trusts its types.
 */
export function soundEvents(events: readonly JournalEvent[]): readonly JournalEvent[] {
  return events.filter((event) => Object.hasOwn(SHAPES, event.type) && holds(event, SHAPES[event.type]))
}

function holds(value: object, shape: Shape): boolean {
  return Object.entries(shape).every(([name, check]) => check(Reflect.get(value, name)))
}
