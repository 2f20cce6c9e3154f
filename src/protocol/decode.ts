import { type HarnessFrame, harnessFrames, type ToolCallFrame } from './harness-frames.ts'
import type { ExecuteBody, ExecuteHead, FilePutFrame, HostFrame, ToolFailure } from './host-frames.ts'
import { MAX_JSON_PARTS, scanJson } from '../support/index.ts'
import { CAPS, MAX_DEPTH } from './caps.ts'

/** The result of reading one line from a harness. */
export type DecodedLine =
  | { readonly kind: 'frame'; readonly frame: HarnessFrame }
  /** Only white space. */
  | { readonly kind: 'blank' }
  /** Not JSON. The line is skipped and published on a diagnostics channel. */
  | { readonly kind: 'not-json' }
  /** JSON that is not a frame of the protocol. It is ignored and counted. */
  | { readonly kind: 'unknown'; readonly reason: string }

const schemas = new Map<string, (typeof harnessFrames)[keyof typeof harnessFrames]>(Object.entries(harnessFrames))
/** The bounds of frames with values of a script. A tool call has fields in addition to its arguments. */
const MAX_PARTS: Readonly<Record<string, number>> = {
  final_result: Number.POSITIVE_INFINITY,
  intermediate: Number.POSITIVE_INFINITY,
  value: Number.POSITIVE_INFINITY,
  tool_call: CAPS.argParts + 32,
}
/** The bound of all other frames, because a schema reports each wrong item of a list, which takes a thousand times the memory of its bytes. */
export const MAX_PLAIN_PARTS = 8192
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * Reads one line of a hostile peer. Never throws. The caller has bounded its length; the parts of the line are counted before it
 * is parsed.
 * @param maxParts maximum parts of a line, as {@link scanJson} counts them; some types of frames have a lower limit.
 */
export function decodeLine(line: Uint8Array, maxParts: number = MAX_JSON_PARTS): DecodedLine {
  const { parts, depth, unsafeNumber } = scanJson(line)
  if (parts > maxParts) return { kind: 'unknown', reason: `holds more than ${maxParts} values` }
  let value: unknown
  try {
    // Inside the try: V8 cannot decode a line that is longer than its longest string.
    const text = decoder.decode(line).trim()
    if (text === '') return { kind: 'blank' }
    value = JSON.parse(text)
  } catch {
    return { kind: 'not-json' }
  }
  if (unsafeNumber !== undefined) return { kind: 'unknown', reason: unsafeNumber }
  if (!isObject(value)) return { kind: 'unknown', reason: 'not an object' }
  const type = Object.hasOwn(value, 'type') ? (value as { type: unknown }).type : undefined
  const schema = typeof type === 'string' ? schemas.get(type) : undefined
  if (schema === undefined) return { kind: 'unknown', reason: 'no known type' }
  if (depth > MAX_DEPTH + 2) return { kind: 'unknown', reason: `nested deeper than ${MAX_DEPTH}` }
  const max = MAX_PARTS[String(type)] ?? MAX_PLAIN_PARTS
  if (parts > max) return { kind: 'unknown', reason: `${String(type)}: holds more than ${max} values` }
  // zod copies a record key by key and drops the key `__proto__`, so the arguments are not passed through it.
  const args = type === 'tool_call' ? (value as Partial<ToolCallFrame>).args : undefined
  const parsed = schema.safeParse(isObject(args) ? { ...value, args: {} } : value)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    return { kind: 'unknown', reason: `${String(type)}: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim() }
  }
  const frame = parsed.data
  if (frame.type === 'tool_call' && isObject(args)) frame.args = args
  return { kind: 'frame', frame }
}

/** One line on the wire, its `\n` included. */
export function encodeFrame(frame: HostFrame): Uint8Array {
  return Buffer.from(`${JSON.stringify(frame)}\n`)
}

/** Encodes `file_put` lines in the same memory: a line is valid until the next one is encoded. */
export class FilePutEncoder {
  #memory = Buffer.alloc(0)

  encode(head: Omit<FilePutFrame, 'type' | 'content_base64'>, piece: Uint8Array): Uint8Array {
    const start = Buffer.from(`{"type":"file_put",${JSON.stringify(head).slice(1, -1)},"content_base64":"`)
    const content = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString('base64')
    const length = start.length + content.length + END_OF_PUT.length
    if (length > this.#memory.length) this.#memory = Buffer.allocUnsafeSlow(length)
    this.#memory.set(start)
    this.#memory.write(content, start.length, 'latin1')
    this.#memory.write(END_OF_PUT, start.length + content.length)
    return this.#memory.subarray(0, length)
  }
}

const END_OF_PUT = '"}\n'

/** A line whose last fields can be large: they begin behind the comma at `bodyAt`. */
export interface LineInParts {
  readonly line: Uint8Array
  readonly bodyAt: number
}

/** The line of an `execute`. */
export function encodeExecute(head: ExecuteHead, body: ExecuteBody): LineInParts {
  const first = `{"type":"execute",${JSON.stringify(head).slice(1, -1)}`
  return { line: Buffer.from(`${first},${JSON.stringify(body).slice(1)}\n`), bodyAt: Buffer.byteLength(first) }
}

/** Splits the line of an `execute` into a line without the body, and the body as JSON, in pieces. */
export function partsOfExecute({ line, bodyAt }: LineInParts): {
  readonly head: Uint8Array
  readonly body: Uint8Array[]
} {
  const fields = Buffer.from(line.subarray(0, bodyAt)).toString().slice('{"type":"execute"'.length)
  const body = [Buffer.from('{'), line.subarray(bodyAt + 1, -1)]
  const bytes = line.length - bodyAt - 1
  return { head: Buffer.from(`{"type":"execute_in_parts"${fields},"body_bytes":${bytes}}\n`), body }
}

/** Encodes a `tool_result` line. The result is already JSON, so that a large one is serialized once. */
export function encodeToolResult(
  executionId: string,
  id: string,
  answer: { readonly resultJson: string } | { readonly error: ToolFailure },
): Uint8Array {
  const [name, json] = 'error' in answer ? ['error', JSON.stringify(answer.error)] : ['result', answer.resultJson]
  const head = `{"type":"tool_result","execution_id":${JSON.stringify(executionId)},"id":${JSON.stringify(id)},"${name}":`
  // Written part by part, because a string of the whole line would copy a large answer.
  const parts = [head, json, '}\n']
  const line = Buffer.allocUnsafe(parts.reduce((bytes, part) => bytes + Buffer.byteLength(part), 0))
  parts.reduce((at, part) => at + line.write(part, at), 0)
  return line
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** True if a value nests deeper than `limit`. Does not recurse. */
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
