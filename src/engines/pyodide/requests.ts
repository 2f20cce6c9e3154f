import { CAPS, type CheckFrame, type HostFrame } from '../../protocol/index.ts'
import { definedOf } from '../../support/index.ts'
import type { BrokerRun } from './broker-run.ts'
import type { RunMessage } from './guest/wire.ts'

/** How long an instance may look for files. */
const COLLECT_MS = 5000
/** Of it, what may lie behind the deadline. */
const AFTER_DEADLINE_MS = 300
/** By then an instance has told of its files, or is killed. */
export const COLLECTED_MS: number = COLLECT_MS + AFTER_DEADLINE_MS

/** What begins a run. */
export type Request = Extract<HostFrame, { type: 'execute' }> | CheckFrame

/** Why a run cannot begin. */
export interface Refusal {
  readonly kind: 'request' | 'secrets'
  readonly message: string
}

/** What is wrong with a request, or undefined. */
export function refusalOf(request: Request): Refusal | undefined {
  if (request.type === 'check') return undefined
  const { required_secrets: required, secrets, tool_sources: sources = [] } = request
  const problem = problemOfSources(sources)
  if (problem !== undefined) return { kind: 'request', message: problem }
  const missing = required.filter((name) => !Object.hasOwn(secrets, name))
  if (missing.length === 0) return undefined
  return { kind: 'secrets', message: `required secrets are missing: ${missing.join(', ')}` }
}

/** What is wrong with the Python tools that a run brings. */
function problemOfSources(sources: readonly { readonly name: string; readonly source: string }[]): string | undefined {
  if (sources.length > CAPS.toolSources) {
    return `the run brings ${sources.length} Python tools; at most ${CAPS.toolSources} are allowed`
  }
  for (const { name, source } of sources) {
    const bytes = Buffer.byteLength(source)
    if (bytes > CAPS.toolSourceBytes) {
      return `the source of the Python tool ${name} has ${bytes} bytes; at most ${CAPS.toolSourceBytes}`
    }
  }
  return undefined
}

/** What begins a run in an instance. */
export function orderOf({ request, deadline }: BrokerRun): RunMessage {
  const deadlineMs = Math.max(0, deadline - performance.now())
  if (request.type === 'check') return { type: 'run', deadlineMs, collect: [], collectMs: 0 }
  const { timeout_sec, collect, limits } = request
  const collectMs = Math.min(Math.max(timeout_sec * 1000, 0) + AFTER_DEADLINE_MS, COLLECT_MS)
  return {
    type: 'run',
    deadlineMs,
    collect,
    collectMs,
    ...definedOf({ memoryBytes: limits.memory_bytes }, ['memoryBytes']),
  }
}

const AROUND = ['preamble', 'postamble'] as const

/** What the script's process is told. */
export function bodyOf({ request, timeoutText }: BrokerRun): object {
  if (request.type === 'execute') {
    const { script, inputs, secrets, tools, tool_sources, preamble, postamble } = request
    return { script, inputs, secrets, timeout_text: timeoutText, tools, tool_sources, preamble, postamble, check: null }
  }
  const { script, mode, policy, names, allow_modules, tools, preamble, postamble } = request
  const check = { mode, policy, names, allow_modules, tools, ...definedOf({ preamble, postamble }, AROUND) }
  return { script, inputs: {}, secrets: {}, timeout_text: timeoutText, tools: null, check }
}

/** In place of an answer that there is no room for. The host writes an answer's id before all else. */
export function tooLarge(answer: Uint8Array): Uint8Array {
  const id = /"id":("(?:[^"\\]|\\.)*")/.exec(Buffer.from(answer.subarray(0, 1024)).toString('utf8'))?.[1] ?? '""'
  const error = { code: 'result_too_large', message: 'the script has too many answers that it did not read yet' }
  return Buffer.from(`{"type":"tool_result","id":${id},"error":${JSON.stringify(error)}}\n`)
}
