import { z } from 'zod'

/*
 * The lines of `run` and `solve` (`--json`, `--events`), of `batch` and of `show --json`, written once:
 * docs/schema/result-line.schema.json is made from this (schema.test.ts), and every line that the tests of the command line
 * see is parsed by it. An unlisted key is an error here, so that a new one gets documented.
 */

const json = z.json()
const count = z.int().min(0)
const v = z.literal(1)
const executionId = z.string().min(1).max(256)

const file = z.strictObject({
  path: z.string(),
  size: count,
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  content_base64: z.string(),
})
const warning = z.strictObject({ code: z.string(), message: z.string(), traceback: z.string().nullable() })

const ending = z.strictObject({
  cause: z.enum([
    'exit',
    'signal',
    'timeout',
    'output-limit',
    'memory-limit',
    'cancelled',
    'destroyed',
    'channel-closed',
    'not-started',
  ]),
  exit_code: z.int().nullable(),
  signal: z.string().nullable(),
  by: z.enum(['script', 'harness', 'host', 'kernel', 'unknown']),
})

const sandbox = z.strictObject({
  id: z.string(),
  engine: z.string(),
  level: z.enum(['vm', 'gvisor', 'container', 'os-sandbox', 'language-only', 'none']),
  python: z.string(),
  use: count.meta({ description: 'How many scripts this sandbox had run, this one included.' }),
  limits_enforced: z.array(z.enum(['memory', 'pids', 'cpu', 'disk', 'output', 'wall'])),
  network: z.enum(['none', 'language-only', 'open']),
})

const environment = z
  .strictObject({
    key: z.string().meta({ description: 'The digest of its content, as `env list` shows it.' }),
    packages: z.record(z.string(), z.string()).meta({ description: 'Version by name.' }),
    cached: z.boolean().meta({ description: 'False if this run installed it.' }),
    ms: z.number().min(0),
  })
  .nullable()
  .meta({ description: 'The packages that were declared; null without any.' })

const toolArgs = z.record(z.string(), json)
const display = z.strictObject({
  kind: z.enum(['result', 'display']),
  data: z.record(z.string(), z.string()).meta({
    description: 'By MIME type: text, JSON, XML and JavaScript as text, anything else in base64. From the script.',
  }),
  left_out: z.array(z.string()).meta({ description: 'MIME types that could not be made, or were too large.' }),
  after: z.strictObject({ stdout: count.meta({ description: 'Bytes of stdout before it.' }) }),
})
const toolState = z
  .enum(['answered', 'failed', 'unanswered'])
  .meta({ description: '`failed`: the script got a ToolError. `unanswered`: the run ended first.' })
const toolEffect = z.enum(['read', 'idempotent', 'write']).nullable()
const toolOutcome = {
  ok: z.boolean(),
  ms: z.number().min(0),
  error: z
    .strictObject({ code: z.string(), message: z.string() })
    .nullable()
    .meta({ description: 'What the script got as a ToolError; null where `ok`.' }),
}

const errorKind = z.enum([
  'error',
  'crash',
  'invalid_request',
  'validation',
  'timeout',
  'oom',
  'output_limit',
  'infrastructure',
  'cancelled',
  'internal',
])

const intermediates = z.array(z.strictObject({ label: z.string(), data: json }))
const logs = z.array(z.strictObject({ level: z.string(), message: z.string() }))

const result = z
  .strictObject({
    v,
    type: z.literal('result'),
    id: z.string().nullable().meta({ description: 'The id of the request; null for `run`.' }),
    execution_id: executionId,
    status: z.enum([
      'completed',
      'step-done',
      'failed',
      'crashed',
      'rejected',
      'timed-out',
      'output-limit',
      'memory-limit',
      'sandbox-lost',
      'cancelled',
    ]),
    success: z.boolean().meta({ description: 'Whether the script gave a result.' }),
    error_kind: errorKind.nullable(),
    has_result: z.boolean(),
    final_data: json,
    error: z.string().nullable(),
    traceback: z.string().nullable(),
    warnings: z.array(warning),
    intermediates,
    logs,
    stdout: z.string(),
    stderr: z.string(),
    stdout_bytes: count,
    stderr_bytes: count,
    output_bytes: count,
    truncated: z.boolean(),
    violations: z.array(
      z.strictObject({ code: z.string(), line: count, column: count, message: z.string(), hint: z.string() }),
    ),
    tool_calls: z.array(
      z.strictObject({ name: z.string(), effect: toolEffect, args: toolArgs, state: toolState, ...toolOutcome }),
    ),
    ending,
    duration_ms: z.number().min(0),
    sandbox,
    environment,
    ignored_frames: count,
    limits_hit: z.array(z.string()),
    files: z.array(file),
    displays: z.array(display),
  })
  .meta({ title: 'A run', description: 'The result of a script, whatever its status.' })

const code = z.string().nullable().meta({ description: 'A code of docs/errors.md; null for a defect of Sandglass.' })
const failureStatus = z.enum(['invalid-request', 'sandbox-lost', 'cancelled', 'failed'])

const refusal = z
  .strictObject({
    v,
    type: z.literal('result'),
    id: z.string().nullable().meta({ description: 'Null when the line has no usable id.' }),
    line: z.int().min(1).optional().meta({ description: 'Number of the bad line, from 1.' }),
    status: failureStatus,
    success: z.literal(false),
    error_kind: errorKind,
    code,
    error: z.string(),
  })
  .meta({ title: 'A request of a batch that was not run' })

const failure = z
  .strictObject({
    v,
    type: z.literal('error'),
    status: failureStatus,
    success: z.literal(false),
    error_kind: errorKind,
    code,
    error: z.string(),
    id: z.string().nullable().optional().meta({ description: 'Only of `repl --json`: the id of the request.' }),
  })
  .meta({
    title: 'A command that ended before a run',
    description: 'The last line; an event has execution_id instead.',
  })

const event = (type: string, shape: z.core.$ZodLooseShape): z.ZodType =>
  z.strictObject({ v, type: z.literal(type), execution_id: executionId, ...shape }).meta({ title: `Event ${type}` })

const milliseconds = z.number().min(0)
const runStatus = z.enum([
  'completed',
  'retries-spent',
  'steps-spent',
  'stagnated',
  'budget-spent',
  'model-failed',
  'infrastructure',
  'cancelled',
  'unfinished',
])
const runMode = z.enum(['plan', 'interactive'])

/** The fields of a whole run in `solve` and `show`. */
const runOutcome = {
  run_id: z.string(),
  status: runStatus,
  success: z.boolean(),
  final_data: json,
  error: z.string().nullable(),
  partial: json.meta({ description: 'The best data of a run that ended without an answer.' }),
  mode: runMode,
  models: z.array(z.string()),
  prompt_tokens: count,
  completion_tokens: count,
  cost: z
    .number()
    .nullable()
    .meta({ description: 'Of all model calls, by `--pricing`; null if that of one is not known.' }),
  tool_calls: count,
  duration_ms: milliseconds,
}

const solveResult = z
  .strictObject({
    v,
    type: z.literal('solve_result'),
    ...runOutcome,
    warnings: z.array(warning).meta({ description: 'Files that could not be saved.' }),
    files: z.array(file),
    displays: z.array(display),
    attempts: count.meta({ description: 'Of all steps.' }),
    steps: count.meta({ description: '0 in mode plan.' }),
  })
  .meta({ title: 'A task', description: 'What `solve` came to.' })

/** Only the envelope of an event is stable here; docs/cli.md lists the types. */
const journalEvent = z
  .strictObject({
    v,
    type: z.literal('event'),
    event: z.looseObject({ v, run_id: z.string(), seq: count, at: z.iso.datetime(), type: z.string() }),
  })
  .meta({ title: 'An event of the journal of a task' })

const review = z
  .strictObject({
    proposal_id: z.string(),
    plan: z.string(),
    script: z.string(),
    sha256: z.string().nullable().meta({ description: 'Null if the script holds a secret.' }),
    dependencies: z.array(z.string()),
    tools: z.array(z.strictObject({ name: z.string(), effect: toolEffect })),
    sandbox: sandbox.omit({ id: true, use: true }),
    problem: z.string().nullable(),
    proposed_at: z.iso.datetime(),
    decision: z
      .strictObject({
        decision: z.enum(['accept', 'respond', 'edit', 'reject']),
        by: z.string().nullable(),
        text: z.string().nullable(),
        script: z.string().nullable(),
        decided_at: z.iso.datetime(),
        waited_ms: milliseconds,
      })
      .nullable(),
  })
  .meta({ title: 'A script that was shown to a reviewer, and the answer' })

const proposal = z
  .strictObject({
    v,
    type: z.literal('proposal'),
    id: z.string(),
    task: z.string(),
    step: z.int().min(1).nullable(),
    attempt: z.int().min(1),
    plan: z.string(),
    script: z.string(),
    sha256: z.string(),
    dependencies: z.array(z.string()),
    tools: review.shape.tools,
    sandbox: review.shape.sandbox,
    diff: z.string().nullable(),
    problem: z.string().nullable(),
  })
  .meta({ title: 'A script of `solve --review always` or `agent` that waits for a decision' })

const approval = z
  .strictObject({
    v,
    type: z.literal('approval'),
    id: z.string(),
    tool: z.string(),
    args: json,
    effect: z.enum(['read', 'idempotent', 'write']),
    line: z.int().min(1).nullable(),
  })
  .meta({ title: 'A call of a tool that waits for approval' })

const attempt = z.strictObject({
  number: z.int().min(1),
  status: z.string().nullable(),
  error: z.string().nullable(),
  traceback: z.string().nullable(),
  prompt: z.strictObject({ digest: z.string(), chars: count, text: z.string().nullable() }).nullable(),
  generation: z
    .strictObject({
      model: z.string().nullable(),
      prompt_tokens: count.nullable(),
      cached_prompt_tokens: count.nullable(),
      completion_tokens: count.nullable(),
      latency_ms: milliseconds,
      answer: z.string().nullable(),
    })
    .nullable(),
  cost: z.number().nullable(),
  script: z.string().nullable(),
  reviews: z.array(review),
  violations: result.shape.violations,
  has_result: z.boolean(),
  final_data: json,
  intermediates: result.shape.intermediates,
  logs: result.shape.logs,
  displays: z.array(display.pick({ data: true, left_out: true })),
  tool_calls: z.array(
    z.strictObject({
      key: z
        .string()
        .meta({ description: 'Call site and ordinal: `L12#3` is the third call of this tool in line 12.' }),
      line: count.nullable(),
      name: z.string(),
      effect: toolEffect,
      args: json,
      ok: z.boolean().nullable(),
      ms: milliseconds.nullable(),
      result_json: z.string().nullable(),
      error: toolOutcome.error,
      approval: z
        .strictObject({
          approved: z.boolean().nullable(),
          reason: z.string().nullable(),
          by: z.string().nullable(),
          args: json,
          decided_at: z.iso.datetime().nullable(),
          waited_ms: milliseconds.nullable(),
        })
        .optional()
        .meta({ description: 'Of a call that needed approval; its first field is null while nobody has decided.' }),
    }),
  ),
  stdout: z.string(),
  stderr: z.string(),
  warnings: z.array(z.strictObject({ code: z.string(), message: z.string() })),
  files: z.array(file.omit({ content_base64: true })),
  sandbox: sandbox.nullable(),
  execution_ms: milliseconds.nullable(),
  duration_ms: milliseconds.nullable(),
  repetition: z.enum(['same-result', 'same-script', 'same-error', 'cycle']).nullable(),
  rerun: z.string().nullable().meta({ description: 'Why the script ran twice: its first sandbox was lost.' }),
})

const runRecord = z
  .strictObject({
    v,
    type: z.literal('run_record'),
    ...runOutcome,
    trace_id: z.string().nullable(),
    task: z.string(),
    sandbox_name: z.string(),
    policy: z.string(),
    tools: z.array(z.string()),
    max_retries: count,
    max_steps: count.nullable(),
    budget: z.strictObject({
      tokens: z.number().nullable(),
      tool_calls: z.number().nullable(),
      wall_ms: z.number().nullable(),
      cost: z.number().nullable(),
    }),
    attempts: z.array(attempt),
    steps: z.array(
      z.strictObject({
        number: z.int().min(1),
        force_finish: z.boolean(),
        ok: z.boolean().nullable(),
        error: z.string().nullable(),
        attempts: z.array(attempt),
      }),
    ),
    started_at: z.string(),
    missing_events: count.meta({ description: 'Events of the journal that cannot be read.' }),
  })
  .meta({ title: 'A record', description: 'The record of one run of `solve`, as `show --json` prints it.' })

const cachedEnvironment = z.strictObject({
  v,
  type: z.literal('environment'),
  key: z.string(),
  python: z.string(),
  packages: z.record(z.string(), z.string()),
  bytes: count,
  last_used: z.string(),
  in_use: z.boolean(),
  ok: z.boolean().optional().meta({ description: 'Only of `env verify`.' }),
  differences: z
    .array(z.strictObject({ path: z.string(), problem: z.enum(['changed', 'missing', 'added']) }))
    .optional(),
})

const artifact = z.strictObject({
  v,
  type: z.literal('artifact'),
  name: z.string(),
  version: count,
  mime_type: z.string(),
  size: count,
  sha256: z.string(),
})

const workspace = z.strictObject({
  v,
  type: z.literal('workspace'),
  id: z.string(),
  files: count,
  bytes: count,
  owner: z.strictObject({ pid: count.nullable(), seen_at: z.string() }).nullable(),
  synced_at: z.string().nullable(),
})

const program = z
  .strictObject({
    v,
    type: z.literal('program'),
    exit_code: z
      .int()
      .meta({ description: '128 and the number of the signal if one ended it; -1 if it could not be executed.' }),
    signal: z.string().nullable(),
    timed_out: z.boolean(),
    out_of_memory: z.boolean(),
    stdout: z.string(),
    stderr: z.string(),
    stdout_bytes: count,
    stderr_bytes: count,
    truncated: z.boolean().meta({ description: 'True if stdout or stderr above was cut in its middle.' }),
    duration_ms: z.number().min(0),
  })
  .meta({ title: 'A program', description: 'The outcome of `exec --json`.' })

const checkpoint = z.strictObject({
  grade: z.enum(['whole', 'partial', 'none']),
  lacks: z
    .array(z.string())
    .meta({ description: 'What a rollback to this point would lack, or why there is no checkpoint.' }),
})
const wayBack = {
  missing: z.array(z.string()).meta({ description: 'What a rollback could not bring back.' }),
  ended: z.array(z.string()).meta({ description: 'The names of the processes that it ended.' }),
}

const cell = z
  .strictObject({
    v,
    type: z.literal('cell'),
    id: z.string(),
    number: z.int().min(1),
    status: z.string().meta({ description: 'As of a run, or `interrupted`.' }),
    error_kind: errorKind.nullable(),
    state: z.enum(['kept', 'rolled-back', 'lost']),
    value: json.meta({ description: 'Of the last expression, where it is JSON.' }),
    has_result: z.boolean(),
    final_data: json,
    intermediates,
    logs,
    stdout: z.string(),
    stderr: z.string(),
    truncated: z.boolean(),
    displays: z.array(display),
    error: z.string().nullable(),
    traceback: z.string().nullable(),
    warnings: z.array(warning),
    tool_calls: z.array(
      z.strictObject({ name: z.string(), effect: toolEffect, args: toolArgs, state: toolState, ...toolOutcome }),
    ),
    checkpoint,
    ...wayBack,
    duration_ms: z.number().min(0),
  })
  .meta({ title: 'A cell', description: 'An answer of `repl --json`.' })

const command = z
  .strictObject({
    v,
    type: z.literal('command'),
    id: z.string(),
    command: z.enum(['checkpoint', 'restore', 'branch', 'drop', 'variables']),
    name: z.string().optional(),
    checkpoint: checkpoint.optional(),
    missing: wayBack.missing.optional(),
    ended: wayBack.ended.optional(),
    variables: z
      .array(
        z.strictObject({
          name: z.string(),
          type: z.string(),
          shape: z.array(count).nullable(),
          bytes: count.nullable(),
        }),
      )
      .optional(),
  })
  .meta({ title: 'The outcome of a command of `repl --json`' })

/** Any line that `run`, `exec`, `repl`, `batch`, `solve`, `show` and `env` print on stdout as JSON. */
export const anyLine: z.ZodType = z
  .union([
    result,
    refusal,
    failure,
    solveResult,
    journalEvent,
    proposal,
    approval,
    runRecord,
    cachedEnvironment,
    artifact,
    workspace,
    program,
    cell,
    command,
    event('started', { sandbox_id: z.string() }),
    event('stdout', { text: z.string() }),
    event('stderr', { text: z.string() }),
    event('log', { level: z.string(), message: z.string() }),
    event('intermediate', { label: z.string(), data: json }),
    event('error', { message: z.string(), traceback: z.string().nullable() }),
    event('final_result', { data: json }),
    event('display', { place: count, ...display.shape }),
    event('file', { path: z.string(), size: count }),
    event('tool_call', {
      id: z.string(),
      name: z.string(),
      effect: toolEffect,
      args: toolArgs,
      line: count.nullable(),
    }),
    event('tool_result', { id: z.string(), name: z.string(), ...toolOutcome }),
    event('approval_requested', {
      id: z.string(),
      approval_id: z.string(),
      name: z.string(),
      effect: toolEffect,
      args: toolArgs,
    }),
    event('approval_decided', {
      id: z.string(),
      approval_id: z.string(),
      name: z.string(),
      approved: z.boolean(),
      reason: z.string().nullable(),
      by: z.string().nullable(),
      args: json,
      waited_ms: milliseconds,
    }),
  ])
  .meta({ title: 'A line of sandglass run --json, run --events, batch, solve --json, solve --events or show --json' })

/** The public form: readers must ignore keys that they do not know, so it does not forbid them. */
export function publicSchema(): unknown {
  return z.toJSONSchema(anyLine, {
    target: 'draft-2020-12',
    override: ({ jsonSchema }) => {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
    },
  })
}
