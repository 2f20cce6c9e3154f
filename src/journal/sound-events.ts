import type { JournalBody, JournalEvent } from './events.ts'

/** True if a field may hold the value. */
type Check = (value: unknown) => boolean
type Shape = Readonly<Record<string, Check>>
type BodyOf<T extends JournalBody['type']> = Extract<JournalBody, { readonly type: T }>
type Shapes = {
  readonly [T in JournalBody['type']]: { readonly [K in Exclude<keyof BodyOf<T>, 'type'>]-?: Check }
}

const any: Check = () => true
const text: Check = (value) => typeof value === 'string'
const number: Check = (value) => typeof value === 'number'
const flag: Check = (value) => typeof value === 'boolean'
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value)
const orAbsent =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value)
const hasShape =
  (shape: Shape): Check =>
  (value) =>
    typeof value === 'object' && value !== null && holds(value, shape)
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)

const textsByName: Check = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(text)

const PLACE = { step: orNull(number), attempt: number }
const violation = hasShape({ code: text, line: number, column: number, message: text, hint: text })
const isolation = { engine: text, level: text, python: text, limits_enforced: listOf(text), network: text }
const sandbox = hasShape({ id: text, use: number, ...isolation })

const SHAPES: Shapes = {
  run_started: {
    task: text,
    mode: (value) => value === 'plan' || value === 'interactive',
    sandbox_name: text,
    policy: text,
    trace_id: orNull(text),
    tools: listOf(text),
    tools_digest: orNull(text),
    max_retries: number,
    max_steps: orNull(number),
    budget: hasShape({
      tokens: orNull(number),
      tool_calls: orNull(number),
      wall_ms: orNull(number),
      cost: orAbsent(orNull(number)),
    }),
  },
  step_started: { step: number, force_finish: flag },
  prompt_written: { ...PLACE, digest: text, chars: number, text: orNull(text) },
  script_generated: {
    ...PLACE,
    model: orNull(text),
    prompt_tokens: orNull(number),
    completion_tokens: orNull(number),
    cached_prompt_tokens: orAbsent(orNull(number)),
    cost: orAbsent(orNull(number)),
    latency_ms: number,
    answer_chars: number,
    script: orNull(text),
    script_digest: orNull(text),
    answer: orNull(text),
  },
  script_checked: { ...PLACE, policy: text, ok: flag, violations: listOf(violation), ms: number },
  script_proposed: {
    ...PLACE,
    proposal_id: text,
    plan: text,
    script: text,
    sha256: orNull(text),
    dependencies: listOf(text),
    tools: listOf(hasShape({ name: text, effect: orNull(text) })),
    sandbox: hasShape(isolation),
    problem: orNull(text),
  },
  proposal_decided: {
    ...PLACE,
    proposal_id: text,
    decision: text,
    by: orNull(text),
    text: orNull(text),
    script: orNull(text),
    waited_ms: number,
  },
  sandbox_assigned: { ...PLACE, sandbox_id: text, engine: text },
  script_rerun: { ...PLACE, reason: text },
  tool_called: { ...PLACE, key: text, line: orNull(number), name: text, effect: orNull(text), args: any },
  tool_answered: {
    ...PLACE,
    key: text,
    name: text,
    ok: flag,
    ms: number,
    result_json: orNull(text),
    result_chars: number,
    error: orNull(hasShape({ code: text, message: text })),
  },
  approval_requested: { ...PLACE, approval_id: text, key: text, name: text, effect: orNull(text), args: any },
  approval_decided: {
    ...PLACE,
    approval_id: text,
    key: text,
    name: text,
    approved: flag,
    reason: orNull(text),
    by: orNull(text),
    args: any,
    waited_ms: number,
  },
  intermediate: { ...PLACE, label: text, data: any },
  display: { ...PLACE, data: textsByName, left_out: listOf(text) },
  log: { ...PLACE, level: text, message: text },
  script_executed: {
    ...PLACE,
    status: text,
    error_kind: orNull(text),
    error: orNull(text),
    traceback: orNull(text),
    has_result: flag,
    final_data: any,
    stdout: text,
    stderr: text,
    warnings: listOf(hasShape({ code: text, message: text })),
    files: orAbsent(listOf(hasShape({ path: text, size: number, sha256: orNull(text) }))),
    cell: orAbsent(hasShape({ number, state: text })),
    tool_calls: number,
    duration_ms: number,
    sandbox,
    ending: hasShape({ cause: text, exit_code: orNull(number), signal: orNull(text) }),
  },
  attempt_ended: { ...PLACE, status: text, error: orNull(text), repetition: orNull(text), duration_ms: number },
  stagnation_found: { ...PLACE, repetition: text },
  step_ended: { step: number, ok: flag, error: orNull(text) },
  run_ended: {
    status: text,
    error: orNull(text),
    final_data: any,
    partial: any,
    prompt_tokens: number,
    completion_tokens: number,
    cost: orAbsent(orNull(number)),
    tool_calls: number,
    duration_ms: number,
  },
}

/** The defaults for damaged fields of `run_started`. */
const DEFAULTS: BodyOf<'run_started'> = {
  type: 'run_started',
  task: '',
  mode: 'plan',
  sandbox_name: '',
  policy: '',
  trace_id: null,
  tools: [],
  tools_digest: null,
  max_retries: 0,
  max_steps: null,
  budget: { tokens: null, tool_calls: null, wall_ms: null },
}

/** True for a type of event that this version writes. */
export function isKnownType(type: string): type is JournalBody['type'] {
  return Object.hasOwn(SHAPES, type)
}

/** True if an event has every field it needs: a stored file may be damaged. */
export function isSound(event: unknown): event is JournalEvent {
  if (typeof event !== 'object' || event === null || !('type' in event)) return false
  const { type } = event
  return typeof type === 'string' && isKnownType(type) && holds(event, SHAPES[type])
}

/** The first event of a task, with defaults for damaged fields, because a record needs it. */
export function soundStart(
  first: JournalEvent | undefined,
): Extract<JournalEvent, { type: 'run_started' }> | undefined {
  if (first?.type !== 'run_started') return undefined
  const shape: Shape = SHAPES.run_started
  const sound = Object.entries(DEFAULTS).map(([name, preset]: [string, unknown]): [string, unknown] => {
    const value: unknown = Reflect.get(first, name)
    return [name, name === 'type' || shape[name]?.(value) === true ? value : preset]
  })
  const { v, run_id: runId, seq, at } = first
  return {
    v,
    run_id: textOr(runId),
    seq,
    at: textOr(at),
    ...(Object.fromEntries(sound) as unknown as BodyOf<'run_started'>),
  }
}

function textOr(given: unknown): string {
  return typeof given === 'string' ? given : ''
}

function holds(value: object, shape: Shape): boolean {
  for (const name in shape) if (shape[name]?.(Reflect.get(value, name)) !== true) return false
  return true
}
