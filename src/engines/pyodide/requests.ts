import { CAPS, type CheckFrame, type CollectLimitsOnWire, type HostFrame } from '../../protocol/index.ts'
import { definedOf } from '../../support/index.ts'
import type { RunState } from './run-state.ts'
import type { RunMessage } from './guest/wire.ts'

/** The time after which an instance that has not sent its files is killed. */
export const COLLECT_TIMEOUT_MS: number = CAPS.collectMs + CAPS.collectAfterDeadlineMs

/** The first bytes of an answer to a tool call, as the library writes it. */
export const ANSWER_HEAD: Buffer = Buffer.from('{"type":"tool_result",')

/** True if a line starts with these bytes. */
export function beginsWith(line: Uint8Array, head: Buffer): boolean {
  return line.length >= head.length && head.equals(line.subarray(0, head.length))
}

/** A request that starts a run. */
export type Request = Extract<HostFrame, { type: 'execute' }> | CheckFrame

/** The reason why a run cannot start. */
export interface Refusal {
  readonly kind: 'request' | 'secrets'
  readonly message: string
}

/** Returns the reason why a request cannot run, or undefined if it can. */
export function findRefusal(request: Request): Refusal | undefined {
  if (request.type === 'check') return undefined
  const { required_secrets: required, secrets, tool_sources: sources = [] } = request
  const missing = required.filter((name) => !Object.hasOwn(secrets, name))
  if (missing.length > 0) return { kind: 'secrets', message: `required secrets are missing: ${missing.join(', ')}` }
  const problem = findSourceProblem(sources)
  return problem === undefined ? undefined : { kind: 'request', message: problem }
}

/** Returns a message if the Python tools of a run are over a limit. */
function findSourceProblem(sources: readonly { readonly name: string; readonly source: string }[]): string | undefined {
  if (sources.length > CAPS.toolSources) {
    return `the run brings ${sources.length} Python tools; at most ${CAPS.toolSources} are allowed`
  }
  for (const { name, source } of sources) {
    const bytes = Buffer.byteLength(source)
    if (bytes > CAPS.toolSourceBytes) {
      return `the source of the Python tool ${name} has ${bytes} bytes; at most ${CAPS.toolSourceBytes} are allowed`
    }
  }
  return undefined
}

/** Returns the message that starts a run in an instance. */
export function runMessageOf({ request, deadline, maxWaitMs }: RunState): RunMessage {
  const deadlineMs = Math.max(0, deadline - performance.now())
  const clock = { deadlineMs, maxWaitMs, graceMs: CAPS.graceMs }
  if (request.type === 'check') return { type: 'run', ...clock, collect: { globs: [], maxMs: 0, caps: CAPS } }
  const { timeout_sec, collect, collect_limits, limits } = request
  const maxMs = Math.min(Math.max(timeout_sec * 1000, 0) + CAPS.collectAfterDeadlineMs, CAPS.collectMs)
  return {
    type: 'run',
    ...clock,
    collect: { globs: collect, maxMs, caps: collectCaps(collect_limits) },
    ...definedOf({ memoryBytes: limits.memory_bytes }, ['memoryBytes']),
  }
}

function collectCaps(limits: CollectLimitsOnWire = {}): typeof CAPS {
  const { max_files, max_file_bytes, max_total_bytes } = limits
  return {
    ...CAPS,
    files: max_files ?? CAPS.files,
    fileBytes: max_file_bytes ?? CAPS.fileBytes,
    totalBytes: max_total_bytes ?? CAPS.totalBytes,
  }
}

const OPTIONAL = ['whole', 'files', 'list_tools', 'preamble', 'postamble'] as const

/** Returns the request as the script's process reads it. */
export function bodyOf({ request, timeoutText }: RunState): object {
  if (request.type === 'execute') {
    const { script, inputs, secrets, tools, tool_sources, stdin_base64, preamble, postamble, cell } = request
    const given = { script, inputs, secrets, tools, tool_sources, stdin_base64, preamble, postamble, cell }
    return { ...given, timeout_text: timeoutText, check: null }
  }
  const { script, mode, policy, names, allow_modules, tools } = request
  const check = { mode, policy, names, allow_modules, tools, ...definedOf(request, OPTIONAL) }
  return { script, inputs: {}, secrets: {}, timeout_text: timeoutText, tools: null, check }
}

/** Makes the replacement of an answer for which there is no room. The id precedes the value in every answer. */
export function makeTooLargeAnswer(answer: Uint8Array): Uint8Array {
  const id = /"id":("(?:[^"\\]|\\.)*")/.exec(Buffer.from(answer.subarray(0, 1024)).toString('utf8'))?.[1] ?? '""'
  const error = {
    code: 'result_too_large',
    message: `the script has more than ${CAPS.unreadAnswerBytes} bytes of unread tool results: read earlier results before calling more tools`,
  }
  return Buffer.from(`{"type":"tool_result","id":${id},"error":${JSON.stringify(error)}}\n`)
}
