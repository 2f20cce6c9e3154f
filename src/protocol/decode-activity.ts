import { MAX_JSON_PARTS, scanJson } from '../support/index.ts'
import { MAX_DEPTH } from './caps.ts'
import { type HarnessActivityFrame, harnessActivityFrames } from './harness-activity-frames.ts'
import type { HostActivityFrame } from './host-activity-frames.ts'

const schemas = new Map<string, (typeof harnessActivityFrames)[keyof typeof harnessActivityFrames]>(
  Object.entries(harnessActivityFrames),
)
/** Maximum number of parts, because a schema reports each wrong item of a list, which takes a thousand times the memory of its bytes. */
const MAX_PARTS = 8192
/** The beginning of a frame in the harness's order of keys. Other orders and ids are also read, but more slowly. */
const HEAD = /^\{"type":"([a-z_]{1,32})","execution_id":"([\w .:/@+-]{1,256})"/
const HEAD_BYTES = 400

/** The type and the id that a line claims. */
export interface FrameHead {
  readonly type: string
  readonly executionId: string
}

/**
 * The type and execution id of a line of a hostile peer; undefined if it is not a frame of an activity. A line with a second
 * `execution_id` may belong to another activity, so its reader must check the id again.
 */
export function headOfFrame(line: Buffer): FrameHead | undefined {
  const quick = HEAD.exec(line.toString('latin1', 0, HEAD_BYTES))
  if (quick !== null) return { type: quick[1] ?? '', executionId: quick[2] ?? '' }
  const { parts, depth } = scanJson(line)
  const value = parts > MAX_JSON_PARTS || depth > MAX_DEPTH + 2 ? undefined : parseObject(line)
  if (value === undefined) return undefined
  const { type, execution_id } = value
  return typeof type === 'string' && typeof execution_id === 'string' ? { type, executionId: execution_id } : undefined
}

/** Decodes a frame of an activity; `decodeLine` decodes the frames of a run. Never throws; undefined for any other line. */
export function decodeActivityFrame(line: Buffer): HarnessActivityFrame | undefined {
  const { parts, depth } = scanJson(line)
  if (parts > MAX_PARTS || depth > MAX_DEPTH) return undefined
  const value = parseObject(line)
  const type = value?.['type']
  const parsed = typeof type === 'string' ? schemas.get(type)?.safeParse(value) : undefined
  return parsed?.success === true ? parsed.data : undefined
}

/** One line on the wire, its `\n` included. */
export function encodeActivityFrame(frame: HostActivityFrame): Uint8Array {
  return Buffer.from(`${JSON.stringify(frame)}\n`)
}

function parseObject(line: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line.toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}
