import { type HarnessFrame, harnessFrames, type ToolCallFrame } from './harness-frames.ts'
import type { HostFrame, ToolFailure } from './host-frames.ts'
import { MAX_DEPTH } from './caps.ts'

/** What one line from a harness turned out to be. */
export type DecodedLine =
  | { readonly kind: 'frame'; readonly frame: HarnessFrame }
  /** Nothing but white space. */
  | { readonly kind: 'blank' }
  /** Not JSON at all: skipped, logged at debug level (EX-11). */
  | { readonly kind: 'not-json' }
  /** JSON that is no frame of the protocol: ignored and counted (EX-11). */
  | { readonly kind: 'unknown'; readonly reason: string }

const schemas = new Map<string, (typeof harnessFrames)[keyof typeof harnessFrames]>(Object.entries(harnessFrames))
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Reads one line of a hostile peer. Never throws. The caller has bounded its length. */
export function decodeLine(line: Uint8Array): DecodedLine {
  let value: unknown
  try {
    // Inside the try: a line longer than the longest string of the engine cannot be decoded.
    const text = decoder.decode(line).trim()
    if (text === '') return { kind: 'blank' }
    value = parseJson(text)
  } catch (error) {
    return error instanceof UnsafeNumberError ? { kind: 'unknown', reason: error.message } : { kind: 'not-json' }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { kind: 'unknown', reason: 'not an object' }
  }
  const type = Object.hasOwn(value, 'type') ? (value as { type: unknown }).type : undefined
  const schema = typeof type === 'string' ? schemas.get(type) : undefined
  if (schema === undefined) return { kind: 'unknown', reason: 'no known type' }
  if (deeperThan(value, MAX_DEPTH + 2)) return { kind: 'unknown', reason: `nested deeper than ${MAX_DEPTH}` }
  const parsed = schema.safeParse(value)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    return { kind: 'unknown', reason: `${String(type)}: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim() }
  }
  const frame = parsed.data
  // zod's record leaves the key `__proto__` out; what a script calls with must be seen whole to be refused.
  if (frame.type === 'tool_call') frame.args = (value as ToolCallFrame).args
  return { kind: 'frame', frame }
}

/** One line on the wire, its `\n` included. */
export function encodeFrame(frame: HostFrame): Uint8Array {
  return Buffer.from(`${JSON.stringify(frame)}\n`)
}

/** A `tool_result` line whose result is JSON already: large ones are written once. */
export function encodeToolResult(
  executionId: string,
  id: string,
  answer: { readonly resultJson: string } | { readonly error: ToolFailure },
): Uint8Array {
  const head = `{"type":"tool_result","execution_id":${JSON.stringify(executionId)},"id":${JSON.stringify(id)},`
  const body = 'error' in answer ? `"error":${JSON.stringify(answer.error)}` : `"result":${answer.resultJson}`
  return Buffer.from(`${head}${body}}\n`)
}

class UnsafeNumberError extends Error {}

/** Only a text that holds one of these can hold a number that JSON.parse would change: many digits, a big exponent. */
const SUSPECT_NUMBER = /\d{16}|[eE]\+?\d{3}/

/** `JSON.parse` would round an integer beyond 2^53, and turn 1e400 into Infinity, in silence; here both are refused (HA-13). */
function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  // Ids and texts look suspect far more often than numbers are, and the exact look costs ten times a plain parse.
  if (!SUSPECT_NUMBER.test(text) || !holdsUnsafeNumber(value)) return value
  return JSON.parse(text, (_key, value: unknown, context?: { source?: string }) => {
    if (typeof value !== 'number') return value
    if (!Number.isFinite(value)) throw new UnsafeNumberError('a number too large for a double')
    if (!Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? '')) {
      throw new UnsafeNumberError('an integer beyond 2^53')
    }
    return value
  })
}

/** Whether a value holds a number beyond 2^53, found without recursion. */
function holdsUnsafeNumber(value: unknown): boolean {
  const rest: unknown[] = [value]
  while (rest.length > 0) {
    const item = rest.pop()
    if (typeof item === 'number' && Math.abs(item) > Number.MAX_SAFE_INTEGER) return true
    if (typeof item !== 'object' || item === null) continue
    for (const child of Object.values(item))
      if (typeof child === 'object' || typeof child === 'number') rest.push(child)
  }
  return false
}

/** Whether a value nests deeper than `limit`, found without recursion. */
export function deeperThan(value: unknown, limit: number): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth += 1) {
    const next: unknown[] = []
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue
      if (depth >= limit) return true
      for (const child of Object.values(item)) if (typeof child === 'object' && child !== null) next.push(child)
    }
    level = next
  }
  return false
}
