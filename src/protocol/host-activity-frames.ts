import { z } from 'zod'
import { CAPS } from './caps.ts'
import { type ExecuteHead, executeHead } from './host-frames.ts'

/** Maximum bytes of the payload of one frame. A larger piece would delay the frames after it. */
export const MAX_PAYLOAD_BYTES: number = 64 * 1024
/** The bytes of input that an activity accepts before it grants more. */
export const INPUT_WINDOW_BYTES: number = 256 * 1024
/** The bytes of a run's lines that a sandbox sends before the host grants more. */
export const FRAMES_WINDOW_BYTES: number = 1024 * 1024

/** The size of a terminal, in characters. */
export interface TerminalSize {
  rows: number
  columns: number
}

/** Limits of one program; absent: those of the sandbox. */
export interface ProgramLimitsOnWire {
  memory_bytes?: number | undefined
  pids?: number | undefined
  cpu_sec?: number | undefined
  file_bytes?: number | undefined
  open_files?: number | undefined
}

/** An `execute` whose large fields follow as input: a JSON object of `body_bytes` bytes. */
export interface ExecuteInPartsFrame extends ExecuteHead {
  type: 'execute_in_parts'
  body_bytes: number
}

/** Start a program. Answered by `started`, `output`, `output_end` and one `activity_done`. */
export interface StartFrame {
  type: 'start'
  execution_id: string
  /** The program and its arguments; no shell reads them. */
  argv: string[]
  env: Record<string, string>
  /** Relative to the workspace; empty: its root. */
  cwd: string
  stdin: 'none' | 'pipe'
  tty: TerminalSize | null
  timeout_sec: number | null
  limits: ProgramLimitsOnWire
  /** Bytes of each output stream that may be sent before any `credit`. */
  window: number
}

/**
 * Begin a session: a process that runs cells, which are `execute` with `session`, one at a time, and keeps its state. Answered by
 * `session_ready`, and by `activity_done` when it ends: by `cancel`, or by itself, for example with its process.
 */
export interface SessionFrame {
  type: 'session'
  execution_id: string
  /** Lower limits than those of the sandbox; absent: those of the sandbox. */
  limits: { memory_bytes?: number | undefined; pids?: number | undefined }
  /** Keep a copy while each cell runs, for a rollback. */
  checkpoints: boolean
  /** The memory limit of the sandbox, of which a copy may take a part; null: there is none. */
  memory_bytes: number | null
}

/**
 * Begin a session with the state that another session has now, or had at a checkpoint. Answered like `session`. The two sessions are
 * independent, also of each other's end.
 */
export interface SessionBranchFrame {
  type: 'session_branch'
  execution_id: string
  session: string
  /** The id of the activity that made the checkpoint; null: the present state. */
  checkpoint: string | null
}

/** Keep the present state of a session until it is released, or the session ends, under the id of this activity. */
export interface SessionCheckpointFrame {
  type: 'session_checkpoint'
  execution_id: string
  session: string
}

/** Make the state of a session that of a checkpoint, which stays. */
export interface SessionRestoreFrame {
  type: 'session_restore'
  execution_id: string
  session: string
  checkpoint: string
}

/** End a checkpoint of a session. */
export interface SessionReleaseFrame {
  type: 'session_release'
  execution_id: string
  session: string
  checkpoint: string
}

/** List the variables of a session, or the names that complete `code` before `cursor`. */
export interface SessionLookFrame {
  type: 'session_look'
  execution_id: string
  session: string
  /** Null: list the variables. */
  code: string | null
  cursor: number
}

/** Interrupt the cell of a session that runs, with KeyboardInterrupt. Ignored if none runs. */
export interface InterruptFrame {
  type: 'interrupt'
  execution_id: string
}

/** Bytes for a program, a socket, a `files_write` or a run: the payload of the frame. */
export interface InputFrame {
  type: 'input'
  execution_id: string
}

/** The input has ended. */
export interface InputEndFrame {
  type: 'input_end'
  execution_id: string
}

/** The terminal has another size. */
export interface ResizeFrame extends TerminalSize {
  type: 'resize'
  execution_id: string
}

/** Send a signal to the program's process group. */
export interface SignalFrame {
  type: 'signal'
  execution_id: string
  signal: string
}

/** The host has taken bytes of a stream: the sandbox may send `bytes` more. */
export interface HostCreditFrame {
  type: 'credit'
  execution_id: string
  stream: 'stdout' | 'stderr' | 'socket' | 'file' | 'frames'
  bytes: number
}

/** Connect to a port of the sandbox's own loopback. Answered by `dialed` or `activity_done`. */
export interface DialFrame {
  type: 'dial'
  execution_id: string
  port: number
  window: number
}

/** Write the files of a pack, which follows as input. */
export interface FilesWriteFrame {
  type: 'files_write'
  execution_id: string
}

/** Send files as a pack. */
export interface FilesReadFrame {
  type: 'files_read'
  execution_id: string
  paths: string[]
  max_file_bytes: number | null
  max_total_bytes: number | null
  window: number
}

/** List everything below a directory, in `entries` frames. */
export interface FileListFrame {
  type: 'file_list'
  execution_id: string
  path: string
  patterns: string[] | null
  max_entries: number
  hidden: boolean
  /** List a link to a regular file in the workspace as that file. */
  follow: boolean
  window: number
}

/** Describe one path, make a directory, remove a path, digest a path. */
export interface FileStatFrame {
  type: 'file_stat'
  execution_id: string
  path: string
}
export interface FileMakeFrame {
  type: 'file_make'
  execution_id: string
  path: string
  mode: number
}
export interface FileRemoveFrame {
  type: 'file_remove'
  execution_id: string
  path: string
  recursive: boolean
}
export interface FileDigestFrame {
  type: 'file_digest'
  execution_id: string
  path: string
}

/** A frame that only a sandbox in workspace mode accepts. */
export type HostActivityFrame =
  | ExecuteInPartsFrame
  | StartFrame
  | SessionFrame
  | SessionBranchFrame
  | SessionCheckpointFrame
  | SessionRestoreFrame
  | SessionReleaseFrame
  | SessionLookFrame
  | InterruptFrame
  | InputFrame
  | InputEndFrame
  | ResizeFrame
  | SignalFrame
  | HostCreditFrame
  | DialFrame
  | FilesWriteFrame
  | FilesReadFrame
  | FileListFrame
  | FileStatFrame
  | FileMakeFrame
  | FileRemoveFrame
  | FileDigestFrame

const executionId = z.string().min(1).max(CAPS.executionId)
const cells = z.int().min(1).max(65_535)
const window = z.int().positive()
const limit = z.int().positive().optional()
const path = z.string()

/** Schemas of these frames. */
export const hostActivityFrames: {
  execute_in_parts: z.ZodType<ExecuteInPartsFrame>
  start: z.ZodType<StartFrame>
  session: z.ZodType<SessionFrame>
  session_branch: z.ZodType<SessionBranchFrame>
  session_checkpoint: z.ZodType<SessionCheckpointFrame>
  session_restore: z.ZodType<SessionRestoreFrame>
  session_release: z.ZodType<SessionReleaseFrame>
  session_look: z.ZodType<SessionLookFrame>
  interrupt: z.ZodType<InterruptFrame>
  input: z.ZodType<InputFrame>
  input_end: z.ZodType<InputEndFrame>
  resize: z.ZodType<ResizeFrame>
  signal: z.ZodType<SignalFrame>
  credit: z.ZodType<HostCreditFrame>
  dial: z.ZodType<DialFrame>
  files_write: z.ZodType<FilesWriteFrame>
  files_read: z.ZodType<FilesReadFrame>
  file_list: z.ZodType<FileListFrame>
  file_stat: z.ZodType<FileStatFrame>
  file_make: z.ZodType<FileMakeFrame>
  file_remove: z.ZodType<FileRemoveFrame>
  file_digest: z.ZodType<FileDigestFrame>
} = {
  execute_in_parts: z.strictObject({
    type: z.literal('execute_in_parts'),
    ...executeHead,
    body_bytes: z.int().positive().max(CAPS.requestLineBytes),
  }),
  start: z.strictObject({
    type: z.literal('start'),
    execution_id: executionId,
    argv: z.array(z.string()).min(1),
    env: z.record(z.string(), z.string()),
    cwd: path,
    stdin: z.enum(['none', 'pipe']),
    tty: z.strictObject({ rows: cells, columns: cells }).nullable(),
    timeout_sec: z.number().positive().nullable(),
    limits: z.strictObject({
      memory_bytes: limit,
      pids: limit,
      cpu_sec: limit,
      file_bytes: limit,
      open_files: limit,
    }),
    window,
  }),
  session: z.strictObject({
    type: z.literal('session'),
    execution_id: executionId,
    limits: z.strictObject({ memory_bytes: limit, pids: limit }),
    checkpoints: z.boolean(),
    memory_bytes: z.int().nonnegative().nullable(),
  }),
  session_branch: z.strictObject({
    type: z.literal('session_branch'),
    execution_id: executionId,
    session: executionId,
    checkpoint: executionId.nullable(),
  }),
  session_checkpoint: z.strictObject({
    type: z.literal('session_checkpoint'),
    execution_id: executionId,
    session: executionId,
  }),
  session_restore: z.strictObject({
    type: z.literal('session_restore'),
    execution_id: executionId,
    session: executionId,
    checkpoint: executionId,
  }),
  session_release: z.strictObject({
    type: z.literal('session_release'),
    execution_id: executionId,
    session: executionId,
    checkpoint: executionId,
  }),
  session_look: z.strictObject({
    type: z.literal('session_look'),
    execution_id: executionId,
    session: executionId,
    code: z.string().max(4096).nullable(),
    cursor: z.int().nonnegative(),
  }),
  interrupt: z.strictObject({ type: z.literal('interrupt'), execution_id: executionId }),
  input: z.strictObject({ type: z.literal('input'), execution_id: executionId }),
  input_end: z.strictObject({ type: z.literal('input_end'), execution_id: executionId }),
  resize: z.strictObject({ type: z.literal('resize'), execution_id: executionId, rows: cells, columns: cells }),
  signal: z.strictObject({ type: z.literal('signal'), execution_id: executionId, signal: z.string() }),
  credit: z.strictObject({
    type: z.literal('credit'),
    execution_id: executionId,
    stream: z.enum(['stdout', 'stderr', 'socket', 'file', 'frames']),
    bytes: window,
  }),
  dial: z.strictObject({
    type: z.literal('dial'),
    execution_id: executionId,
    port: z.int().min(1).max(65_535),
    window,
  }),
  files_write: z.strictObject({ type: z.literal('files_write'), execution_id: executionId }),
  files_read: z.strictObject({
    type: z.literal('files_read'),
    execution_id: executionId,
    paths: z.array(path),
    max_file_bytes: z.int().nonnegative().nullable(),
    max_total_bytes: z.int().nonnegative().nullable(),
    window,
  }),
  file_list: z.strictObject({
    type: z.literal('file_list'),
    execution_id: executionId,
    path,
    patterns: z.array(z.string()).nullable(),
    max_entries: z.int().positive(),
    hidden: z.boolean(),
    follow: z.boolean(),
    window,
  }),
  file_stat: z.strictObject({ type: z.literal('file_stat'), execution_id: executionId, path }),
  file_make: z.strictObject({
    type: z.literal('file_make'),
    execution_id: executionId,
    path,
    mode: z.int().min(0).max(0o777),
  }),
  file_remove: z.strictObject({
    type: z.literal('file_remove'),
    execution_id: executionId,
    path,
    recursive: z.boolean(),
  }),
  file_digest: z.strictObject({ type: z.literal('file_digest'), execution_id: executionId, path }),
}
