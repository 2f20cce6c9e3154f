import { readFileSync } from 'node:fs'
import type { HarnessFrame, HostFrame } from '../../src/protocol/index.ts'

/** A frame as plain data. */
export type Fields = Readonly<Record<string, unknown>>

/** The id of the run that a case is about. */
export const OWN_ID = 'r1'
/** The id of another run. */
export const FOREIGN_ID = 'r2'

/** Valid frames of each type that a harness sends, after the transcripts of docs/protocol.md and the recorded streams. */
export const HARNESS_CORPUS: readonly Fields[] = [
  ...(harnessSamples() satisfies HarnessFrame[]).map((frame): Fields => ({ ...frame })),
  ...recordedFrames(),
]

/** Valid frames of each type that a host sends. */
export const HOST_CORPUS: readonly Fields[] = (hostSamples() satisfies HostFrame[]).map((frame): Fields => ({
  ...frame,
}))

/** Valid lines of a script's own process, as the harness's runtime writes them. */
export const CHILD_CORPUS: readonly Fields[] = [
  { type: 'final_result', data: { rows: [1, 2.5, null, true, 'ü'] } },
  { type: 'intermediate', label: 'half', data: [0] },
  { type: 'log', message: 'm', level: 'info' },
  { type: 'error', message: 'ValueError: x', traceback: 'Traceback …', kind: 'exception' },
  { type: 'error', message: 'Script timed out after 10s', traceback: null, kind: 'timeout' },
  { type: 'tool_call', id: '1', name: 'double', line: 3, args: { n: 21 } },
  {
    type: 'check_result',
    violations: [
      { code: 'unknown_name', line: 1, column: 0, message: "'emit_resul' is not defined", hint: 'Did you …' },
    ],
  },
  { type: 'setup_over' },
  { type: 'error', message: "the preamble failed: KeyError: 'a'", traceback: null, kind: 'setup' },
  { type: 'finished' },
]

function harnessSamples(): HarnessFrame[] {
  const of = { execution_id: OWN_ID }
  const content = Buffer.from('a,b\n1,2\n').toString('base64')
  const exit = { cause: 'exit', exit_code: 0, signal: null, by: 'script' } as const
  const done = { type: 'script_done', ...of, stdout_bytes: 8, stderr_bytes: 0, reusable: true, use: 1 } as const
  return [
    {
      type: 'ready',
      protocol: 2,
      python: '3.11.2',
      tools: { loaded: ['a.py'], failed: [{ name: 'b.py', message: 'OSError: no' }] },
      preload: { loaded: ['math'], failed: [], deferred: ['numpy'] },
      checks: { pid: 1, uid: 1000, leaked_fds: 0, seccomp: true, interfaces: 'lo', memory_limit: null },
    },
    { type: 'final_result', ...of, data: { a: 1, rows: [1, 2.5, null, true, 'ü😀'], deep: [[[{}]]] } },
    { type: 'final_result', ...of, data: null },
    { type: 'intermediate', ...of, label: 'progress', data: 50 },
    {
      type: 'error',
      ...of,
      message: 'ZeroDivisionError: division by zero',
      traceback: 'Traceback\n  1/0',
      kind: 'exception',
    },
    { type: 'error', ...of, message: 'the run was cancelled', traceback: null, kind: 'cancelled' },
    { type: 'error', ...of, message: 'MemoryError', traceback: null, kind: 'memory' },
    { type: 'log', ...of, message: 'hi', level: 'warning' },
    { type: 'stdout', ...of, text: 'rows: 2\n' },
    { type: 'stderr', ...of, text: 'Zeile\u2028neu\r\n\u0000' },
    { type: 'file', ...of, path: 'out/in.csv', size: 8, offset: 0, content_base64: content },
    { type: 'tool_call', ...of, id: '1', name: 'double', line: 1, args: { n: 21 } },
    { type: 'tool_call', ...of, id: '2', name: 'other', args: {} },
    {
      type: 'check_result',
      ...of,
      violations: [{ code: 'unknown_name', line: 1, column: 0, message: 'm', hint: 'h' }],
    },
    { ...done, ending: exit, duration_ms: 3.624, limits_hit: ['max_files'], warnings: [], memory_kills: 0 },
    {
      ...done,
      ending: { cause: 'signal', exit_code: null, signal: 'SIGKILL', by: 'unknown' },
      duration_ms: 0,
      limits_hit: [],
      warnings: [{ code: 'collect_skipped', message: 'm' }],
      reusable: false,
    },
    { type: 'pong', nonce: '1' },
    { type: 'reset_done', nonce: '2', reusable: true },
  ]
}

function hostSamples(): HostFrame[] {
  const of = { execution_id: OWN_ID }
  const execute = {
    type: 'execute',
    ...of,
    script: 'emit_result(1)',
    mode: 'plan',
    timeout_sec: 30,
    max_output_bytes: 65_536,
    inputs: {},
    secrets: {},
    required_secrets: [],
    collect: [],
    limits: {},
  } as const
  const double = {
    name: 'double',
    params: [{ name: 'n', type: 'int', required: true, nullable: false }],
    more: false,
    returns: 'int',
    doc: 'Twice.',
    types: '',
  }
  const content = Buffer.from('a,b\n1,2\n').toString('base64')
  return [
    { ...execute, required_secrets: [], collect: [], inputs: { rows: [1, 2, { a: 'ü' }] } },
    {
      ...execute,
      mode: 'interactive',
      required_secrets: ['KEY', 'MORE'],
      secrets: { KEY: 'value-of-key' },
      collect: ['*.csv', 'out/**'],
      limits: { memory_bytes: 100_000_000, pids: 9 },
      tools: [double],
      tool_sources: [{ name: 'half', source: 'def half(n):\n    return n // 2\n', stub: 'def half(n): ...' }],
      preamble: 'import math',
      postamble: 'emit_log("done")',
    },
    { ...execute, required_secrets: [], collect: ['**'], tools: [double] },
    {
      type: 'check',
      ...of,
      script: 'emit_resul(1)',
      mode: 'interactive',
      policy: 'standard',
      timeout_sec: 10,
      names: ['rows'],
      allow_modules: ['csv'],
      tools: [{ ...double, schemas: { n: { type: 'integer' } }, result: true }],
    },
    { type: 'tool_result', ...of, id: '1', result: { rows: [42] } },
    { type: 'tool_result', ...of, id: '2', error: { code: 'failed', message: 'm' } },
    { type: 'tool_time', ...of, executed_ms: 12.5, executing: true },
    { type: 'file_put', ...of, path: 'in/a.csv', mode: 0o644, offset: 0, content_base64: content },
    { type: 'file_put', ...of, path: 'in/a.csv', mode: 0o600, offset: 8, content_base64: content },
    { type: 'cancel', ...of },
    { type: 'ping', nonce: '1' },
    { type: 'reset', nonce: '2' },
  ]
}

/** Frames of the recorded streams in `test/data`. */
function recordedFrames(): Fields[] {
  const file = new URL('../../test/data/mission-cases.json', import.meta.url)
  const { cases } = JSON.parse(readFileSync(file, 'utf8')) as {
    cases: readonly { readonly stdout?: readonly Fields[] }[]
  }
  return cases.flatMap(({ stdout = [] }) => stdout.map((frame) => ({ ...frame, execution_id: OWN_ID })))
}
