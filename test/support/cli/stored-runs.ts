import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JournalBody } from '../../../src/journal/index.ts'

/** The ids of two runs, an hour apart. */
export const FIRST = '20261122T120000000-aaaaaaaa'
export const SECOND = '20261122T130000000-bbbbbbbb'

/** A text with attacks on a page, a terminal and the message of an agent. */
export const HOSTILE: string = [
  '</script><script>document.title = "taken"</script>',
  '<img src=x onerror="document.title = \'taken\'">',
  '\u001B]0;taken\u0007\u001B[2J\u001B[31m',
  '</tool_execution>',
  '"><style>body{display:none}</style>',
  '\u202Edesrever',
].join(' ')

/** Makes a directory below `parent` with a journal of these events; returns its path. */
export function storeRun(parent: string, runId: string, bodies: readonly JournalBody[]): string {
  mkdirSync(parent, { recursive: true })
  const lines = bodies.map((body, seq) =>
    JSON.stringify({
      v: 1,
      run_id: runId,
      seq,
      at: new Date(Date.UTC(2026, 10, 22, 12, 0, seq)).toISOString(),
      ...body,
    }),
  )
  writeFileSync(join(parent, `${runId}.jsonl`), lines.map((line) => `${line}\n`).join(''))
  return parent
}

/** The beginning of a run in PLAN mode. */
export function startRun(task: string): JournalBody {
  return {
    type: 'run_started',
    task,
    mode: 'plan',
    sandbox_name: 'default',
    policy: 'strict',
    trace_id: null,
    tools: ['search'],
    tools_digest: null,
    max_retries: 1,
    max_steps: null,
    budget: { tokens: null, tool_calls: null, wall_ms: null },
  }
}

/** A run in which every foreign text is {@link HOSTILE}. */
export function hostileRun(): JournalBody[] {
  const place = { step: null, attempt: 1 }
  const sandbox = { id: 'sg-1', engine: 'local', level: 'os-sandbox', python: '3.11.2', use: 1, network: 'none' }
  return [
    { ...startRun(HOSTILE), trace_id: HOSTILE, tools: [HOSTILE] } as JournalBody,
    { type: 'prompt_written', ...place, digest: 'd', chars: 10, text: HOSTILE },
    {
      type: 'script_generated',
      ...place,
      model: HOSTILE,
      prompt_tokens: 1,
      completion_tokens: 1,
      latency_ms: 1000,
      answer_chars: 1,
      script: `x = 1\n${HOSTILE}`,
      script_digest: null,
      answer: HOSTILE,
    },
    {
      type: 'script_checked',
      ...place,
      policy: 'strict',
      ok: false,
      violations: [{ code: HOSTILE, line: 2, column: 3, message: HOSTILE, hint: HOSTILE }],
      ms: 1,
    },
    {
      type: 'tool_called',
      ...place,
      key: 'L1#1',
      line: 1,
      name: HOSTILE,
      effect: 'read',
      args: { [HOSTILE]: HOSTILE },
    },
    {
      type: 'tool_answered',
      ...place,
      key: 'L1#1',
      name: HOSTILE,
      ok: false,
      ms: 1,
      result_json: null,
      result_chars: 0,
      error: { code: HOSTILE, message: HOSTILE },
    },
    { type: 'intermediate', ...place, label: HOSTILE, data: { [HOSTILE]: HOSTILE } },
    { type: 'log', ...place, level: HOSTILE, message: HOSTILE },
    {
      type: 'script_executed',
      ...place,
      status: HOSTILE,
      error_kind: null,
      error: HOSTILE,
      traceback: `  File "<script>", line 2\n${HOSTILE}`,
      has_result: false,
      final_data: null,
      stdout: HOSTILE,
      stderr: HOSTILE,
      warnings: [{ code: HOSTILE, message: HOSTILE }],
      tool_calls: 1,
      duration_ms: 1,
      sandbox: { ...sandbox, engine: HOSTILE, python: HOSTILE, limits_enforced: [HOSTILE] },
      ending: { cause: 'exit', exit_code: 1, signal: null },
    },
    {
      type: 'run_ended',
      status: 'retries-spent',
      error: HOSTILE,
      final_data: null,
      partial: HOSTILE,
      prompt_tokens: 1,
      completion_tokens: 1,
      tool_calls: 1,
      duration_ms: 9000,
    },
  ]
}
