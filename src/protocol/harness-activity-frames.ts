import { z } from 'zod'
import { CAPS } from './caps.ts'
import { type CheckpointOnWire, checkpointOnWire, missingItems } from './harness-frames.ts'
import { WIRE_CAUSES, WIRE_PARTIES, type WireEnding } from './wire-ending.ts'

/** The program was executed. */
export interface StartedFrame {
  type: 'started'
  execution_id: string
  pid: number
}

/** The socket is connected. */
export interface DialedFrame {
  type: 'dialed'
  execution_id: string
}

/** A stream of bytes out of an activity. */
export type ActivityStream = 'stdout' | 'stderr' | 'socket' | 'file'

/** Bytes of a stream: the payload of the frame. */
export interface ActivityOutputFrame {
  type: 'output'
  execution_id: string
  stream: ActivityStream
}

/** A stream is at its end. */
export interface OutputEndFrame {
  type: 'output_end'
  execution_id: string
  stream: ActivityStream
}

/** The entry at one path. */
export interface EntryOnWire {
  path: string
  kind: 'file' | 'directory' | 'link' | 'other'
  size: number
  mode: number
  mtime_ms: number
  target?: string | null | undefined
  /** The version of a file, which differs after every change. Absent if unknown, and for the first 20 ms after a change. */
  version?: string | null | undefined
}

/** A part of a listing. */
export interface EntriesFrame {
  type: 'entries'
  execution_id: string
  entries: EntryOnWire[]
}

/** The host may send this many more bytes of input. */
export interface HarnessCreditFrame {
  type: 'credit'
  execution_id: string
  stream: 'stdin'
  bytes: number
}

/** The reason that an activity failed. */
export interface ActivityFailure {
  code: string
  message: string
}

/** The last frame of every activity except a run. */
export interface ActivityDoneFrame {
  type: 'activity_done'
  execution_id: string
  /** Null for an activity without a process, and for a program that could not be executed. */
  ending: WireEnding | null
  error: ActivityFailure | null
  result?: unknown
  /** Names that a listing left out because they are not UTF-8. */
  skipped: number
  duration_ms: number
  /** True if all its processes are known to be dead. */
  confirmed: boolean
}

/** The session is ready: its first cell may begin. */
export interface SessionReadyFrame {
  type: 'session_ready'
  execution_id: string
  checkpoint: CheckpointOnWire
  /** Of a branch: descriptions of the parts of the state that it lacks. */
  missing?: string[] | undefined
}

/** A frame that only a sandbox in workspace mode sends. */
export type HarnessActivityFrame =
  | StartedFrame
  | SessionReadyFrame
  | DialedFrame
  | ActivityOutputFrame
  | OutputEndFrame
  | EntriesFrame
  | HarnessCreditFrame
  | ActivityDoneFrame

/** Maximum number of entries in one frame. */
const MAX_ENTRIES = 200
const MAX_MESSAGE = CAPS.errorMessage
const executionId = z.string().min(1).max(CAPS.executionId)
const stream = z.enum(['stdout', 'stderr', 'socket', 'file'])

const entry = z.object({
  path: z.string().max(4096),
  kind: z.enum(['file', 'directory', 'link', 'other']),
  size: z.int().nonnegative(),
  mode: z.int().min(0).max(0o7777),
  mtime_ms: z.number(),
  target: z.string().max(4096).nullish(),
  version: z.string().max(64).nullish(),
})

/** The schema of an entry in the answer to `file_stat`. */
export const entryOnWire: z.ZodType<EntryOnWire> = entry

/** Schemas of these frames. Unknown fields are dropped, unknown types ignored and counted. */
export const harnessActivityFrames: {
  started: z.ZodType<StartedFrame>
  session_ready: z.ZodType<SessionReadyFrame>
  dialed: z.ZodType<DialedFrame>
  output: z.ZodType<ActivityOutputFrame>
  output_end: z.ZodType<OutputEndFrame>
  entries: z.ZodType<EntriesFrame>
  credit: z.ZodType<HarnessCreditFrame>
  activity_done: z.ZodType<ActivityDoneFrame>
} = {
  started: z.object({ type: z.literal('started'), execution_id: executionId, pid: z.int().positive() }),
  session_ready: z.object({
    type: z.literal('session_ready'),
    execution_id: executionId,
    checkpoint: checkpointOnWire,
    missing: missingItems.optional(),
  }),
  dialed: z.object({ type: z.literal('dialed'), execution_id: executionId }),
  output: z.object({ type: z.literal('output'), execution_id: executionId, stream }),
  output_end: z.object({ type: z.literal('output_end'), execution_id: executionId, stream }),
  entries: z.object({
    type: z.literal('entries'),
    execution_id: executionId,
    entries: z.array(entry).max(MAX_ENTRIES),
  }),
  credit: z.object({
    type: z.literal('credit'),
    execution_id: executionId,
    stream: z.literal('stdin'),
    bytes: z.int().positive(),
  }),
  activity_done: z.object({
    type: z.literal('activity_done'),
    execution_id: executionId,
    ending: z
      .object({
        cause: z.enum(WIRE_CAUSES),
        exit_code: z.int().nullable(),
        signal: z.string().max(32).nullable(),
        by: z.enum(WIRE_PARTIES),
      })
      .nullable()
      .default(null),
    error: z
      .object({ code: z.string().max(64), message: z.string().max(MAX_MESSAGE) })
      .nullable()
      .default(null),
    result: z.unknown().optional(),
    skipped: z.int().nonnegative().default(0),
    duration_ms: z.number().nonnegative().default(0),
    confirmed: z.boolean().default(false),
  }),
}
