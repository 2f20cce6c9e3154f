import { CAPS, type HostFrame } from '../../protocol/index.ts'

type IsSound = (value: unknown) => boolean

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const MAX_MODE = 0o777
/** Texts that can hold a number beyond the range of a double. The lookbehind keeps the search linear: a script may be digits. */
const SUSPECT_NUMBER = /(?<!\d)\d{309}|[eE]\+?\d\d/

const isText: IsSound = (value) => typeof value === 'string'
/** True for an id of a run or an activity. */
export const isId: IsSound = (value) =>
  typeof value === 'string' && value.length > 0 && Array.from(value).length <= CAPS.executionId
const isNonce: IsSound = (value) => typeof value === 'string' && Array.from(value).length <= CAPS.nonce
const isCount: IsSound = (value) => Number.isInteger(value) && Number(value) >= 0
const isPositive: IsSound = (value) => Number.isInteger(value) && Number(value) > 0
const isMode: IsSound = (value) => isCount(value) && Number(value) <= MAX_MODE
const isTime: IsSound = (value) => typeof value === 'number' && value > 0
const isAmount: IsSound = (value) => typeof value === 'number' && value >= 0
const isFlag: IsSound = (value) => typeof value === 'boolean'
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isTexts: IsSound = (value) => Array.isArray(value) && value.every(isText)
const isTable: IsSound = (value) => isObject(value) && Object.values(value).every(isText)
const isObjects: IsSound = (value) => Array.isArray(value) && value.every(isObject)
const isSource: IsSound = (value) => isObject(value) && ['name', 'source', 'stub'].every((name) => isText(value[name]))
const areLimits: IsSound = (value) =>
  isObject(value) && ['memory_bytes', 'pids'].every((name) => !Object.hasOwn(value, name) || isPositive(value[name]))

function orAbsent(isSound: IsSound): IsSound {
  return (value) => value === undefined || value === null || isSound(value)
}

const COLLECT_LIMITS = ['max_files', 'max_file_bytes', 'max_total_bytes'] as const
const areCollectLimits: IsSound = (value) =>
  isObject(value) && COLLECT_LIMITS.every((name) => orAbsent(isPositive)((value as Record<string, unknown>)[name]))

/** True for the field `cell` of a request. */
export const isCell: IsSound = (value) =>
  isObject(value) && isPositive(value['number']) && ['keep', 'rollback'].includes(value['on_error'] as string)

const WRAPPER_CODE = { preamble: orAbsent(isText), postamble: orAbsent(isText) }

/**
 * The fields that a broker reads, by type of request. The harness has the same table in `broker/request_shape.py`;
 * test/unit/engines/pyodide/request-shape.test.ts compares how both read the same lines.
 */
export const REQUEST_FIELDS: Readonly<Record<HostFrame['type'], Readonly<Record<string, IsSound>>>> = {
  execute: {
    execution_id: isId,
    script: isText,
    timeout_sec: isTime,
    max_output_bytes: isPositive,
    inputs: isObject,
    secrets: isTable,
    required_secrets: isTexts,
    collect: isTexts,
    collect_limits: orAbsent(areCollectLimits),
    limits: areLimits,
    tools: orAbsent(isObjects),
    tool_sources: orAbsent((value) => Array.isArray(value) && value.every(isSource)),
    tool_endpoint: orAbsent((value) => isObject(value) && isText(value['host']) && isText(value['token'])),
    stdin_base64: orAbsent(isText),
    max_tool_wait_sec: orAbsent(isAmount),
    ...WRAPPER_CODE,
  },
  check: {
    execution_id: isId,
    script: isText,
    mode: isText,
    policy: isText,
    timeout_sec: isTime,
    whole: orAbsent(isText),
    names: isTexts,
    allow_modules: isTexts,
    files: orAbsent(isFlag),
    list_tools: orAbsent(isFlag),
    tools: isObjects,
    ...WRAPPER_CODE,
  },
  tool_result: { execution_id: isId, id: isText },
  tool_time: { execution_id: isId, executed_ms: isAmount, executing: isFlag },
  file_put: { execution_id: isId, path: isText, mode: isMode, offset: isCount, content_base64: isText },
  cancel: { execution_id: isId },
  ping: { nonce: isNonce },
  reset: { nonce: isNonce },
}

/**
 * The frame on a line of a host, or undefined for a blank line or an unknown type.
 * @throws Error that names the problem, without quoting the line.
 */
export function readRequest(line: Uint8Array): HostFrame | undefined {
  const frame = readObject(line)
  return frame === undefined ? undefined : checkRequest(frame)
}

/** The value on a line; undefined for a blank line. @throws Error that names the problem. */
export function readObject(line: Uint8Array): unknown {
  const text = textOf(line)
  return text.trim() === '' ? undefined : parse(text)
}

/** A value as a frame, or undefined if its type is not known. @throws Error that names the problem. */
export function checkRequest(frame: unknown): HostFrame | undefined {
  if (!isObject(frame) || typeof frame['type'] !== 'string') throw new Error('a line is not a frame with a type')
  const { type } = frame
  if (!Object.hasOwn(REQUEST_FIELDS, type)) return undefined
  const known = frame as unknown as HostFrame
  for (const [name, isSound] of Object.entries(REQUEST_FIELDS[known.type])) {
    if (!isSound(Object.hasOwn(frame, name) ? frame[name] : undefined))
      throw new Error(`${type} has an invalid ${name}`)
  }
  return known
}

function textOf(line: Uint8Array): string {
  try {
    return decoder.decode(line)
  } catch {
    throw new Error('a line is not JSON')
  }
}

function parse(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error('a line is not JSON')
  }
  if (SUSPECT_NUMBER.test(text) && hasInfinity(value)) throw new Error('a number is beyond the range of a float')
  return value
}

/** True if a number anywhere in the value was too large for a double. Iterative: requests may be deep. */
function hasInfinity(value: unknown): boolean {
  const rest = [value]
  while (rest.length > 0) {
    const next = rest.pop()
    if (typeof next === 'number' && !Number.isFinite(next)) return true
    if (typeof next === 'object' && next !== null) for (const each of Object.values(next) as unknown[]) rest.push(each)
  }
  return false
}
