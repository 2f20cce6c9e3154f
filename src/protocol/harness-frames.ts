import { z } from 'zod'
import { CAPS } from './caps.ts'
import { WIRE_CAUSES, WIRE_PARTIES, type WireEnding } from './wire-ending.ts'

/** A file or module that could not be loaded, and the reason. */
export interface FailedImport {
  name: string
  message: string
}

/** Sent once, after tools and preloads are loaded. */
export interface ReadyFrame {
  type: 'ready'
  protocol: number
  python: string
  tools: { loaded: string[]; failed: FailedImport[] }
  /** `deferred`: left a thread when imported, so it is imported in each run instead. */
  preload: { loaded: string[]; failed: FailedImport[]; deferred: string[] }
  /** The protections that the harness found in force: name to value. */
  checks: Record<string, string | number | boolean | null>
}

/** NaN values that were converted to null: their number, and the paths of the first ones. */
export interface NanAsNull {
  count: number
  paths: string[]
}

/** `emit_result` was called. */
export interface FinalResultFrame {
  type: 'final_result'
  execution_id: string
  data: unknown
  nan_as_null?: NanAsNull | undefined
}

/** `emit_intermediate` was called. */
export interface IntermediateFrame {
  type: 'intermediate'
  execution_id: string
  label: string
  data: unknown
  nan_as_null?: NanAsNull | undefined
}

/** The value of the last expression of a cell, if it is JSON. */
export interface ValueFrame {
  type: 'value'
  execution_id: string
  data: unknown
  nan_as_null?: NanAsNull | undefined
}

/** The content of a checkpoint: everything, all but what `lacks` names, or nothing, for the reasons in `lacks`. */
export interface CheckpointOnWire {
  grade: 'whole' | 'partial' | 'none'
  lacks: string[]
}

/** The session after a cell. */
export interface CellEndOnWire {
  state: 'kept' | 'rolled-back' | 'lost'
  /** The checkpoint of the state that the next cell finds. */
  checkpoint: CheckpointOnWire
  /** Descriptions of the parts of the state that the rollback could not restore. */
  missing: string[]
  /** Names of the processes that the rollback ended. */
  ended: string[]
}

/** The script failed. */
export interface ErrorFrame {
  type: 'error'
  execution_id: string
  message: string
  traceback: string | null
  kind: string
}

/** `emit_log` was called. */
export interface LogFrame {
  type: 'log'
  execution_id: string
  message: string
  level: string
}

/** The script, or a process that it started, wrote to its stdout or stderr. */
export interface OutputFrame {
  type: 'stdout' | 'stderr'
  execution_id: string
  text: string
}

/** The script showed a value: a MIME bundle. */
export interface DisplayFrame {
  type: 'display'
  execution_id: string
  /** `result`: the value of the last expression of a cell. */
  kind: 'result' | 'display'
  /** By MIME type: text as it is, anything else in base64. */
  data: Record<string, string>
  /** MIME types whose content could not be made or was too large, and names that are no MIME types, in quotes. */
  left_out: string[]
  /** Its place: the bytes of stdout before it. */
  after: { stdout: number }
}

/** The script called a host tool and waits for its `tool_result`. */
export interface ToolCallFrame {
  type: 'tool_call'
  execution_id: string
  /** Chosen by the script's process. It proves nothing. */
  id: string
  name: string
  /** A line of the script, from 1, as its process reports it; absent if unknown. */
  line?: number | null | undefined
  /** Arguments by the names of the tool's own schema. */
  args: Record<string, unknown>
}

/** One violation of a script. */
export interface ViolationOnWire {
  code: string
  /** From 1, as Python counts. */
  line: number
  /** From 0, in characters. */
  column: number
  message: string
  hint: string
}

/** The violations of a script, in the order of lines. */
export interface CheckResultFrame {
  type: 'check_result'
  execution_id: string
  violations: ViolationOnWire[]
  /** True if `whole` of the check is the script. */
  whole?: boolean | undefined
  /** The names of the tools that the script may call, if the check asks for them. */
  tools?: string[] | undefined
}

/** A piece of a collected file. Pieces of a file are sent in order, files one after the other. */
export interface FileFrame {
  type: 'file'
  execution_id: string
  path: string
  size: number
  offset: number
  content_base64: string
}

/** The last frame of a run: every process that the script started is dead, and its files are wiped. */
export interface ScriptDoneFrame {
  type: 'script_done'
  execution_id: string
  ending?: WireEnding | undefined
  duration_ms: number
  stdout_bytes: number
  stderr_bytes: number
  limits_hit: string[]
  warnings: { code: string; message: string }[]
  /** True if everything was killed, wiped and found unchanged, so that the sandbox may serve again. */
  reusable: boolean
  /** Scripts that this sandbox has run, this one included. */
  use: number
  /** Number of OOM kills during the run; absent if the harness cannot see them. */
  memory_kills?: number | undefined
  /** CPU time of the sandbox since its start, in milliseconds; absent if the harness does not count it. */
  cpu_time_ms?: number | undefined
  /** True if the run ended within the preamble or a Python tool: no part of the script ran. */
  in_setup?: boolean | undefined
  /** Modules that the run loaded, except those that another one of them imported; reported by the script's process, so not trusted. */
  imported?: string[] | undefined
  /** Present only for a cell. */
  cell?: CellEndOnWire | undefined
}

/** Answer to `ping`. */
export interface PongFrame {
  type: 'pong'
  nonce: string
}

/** Answer to `reset`. */
export interface ResetDoneFrame {
  type: 'reset_done'
  nonce: string
  reusable: boolean
}

/** A frame from the harness, as it is on the wire. */
export type HarnessFrame =
  | ReadyFrame
  | FinalResultFrame
  | IntermediateFrame
  | ValueFrame
  | ErrorFrame
  | LogFrame
  | OutputFrame
  | FileFrame
  | DisplayFrame
  | ToolCallFrame
  | CheckResultFrame
  | ScriptDoneFrame
  | PongFrame
  | ResetDoneFrame

const executionId = z.string().min(1).max(CAPS.executionId)
const failedImport = z.object({ name: z.string(), message: z.string() })

/** The name of a module, with its dots. */
export const MODULE_NAME: RegExp = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$/

/** The name of a MIME type, without parameters. */
export const MIME_TYPE: RegExp = /^[a-z0-9][a-z0-9!#$&^_.+-]*\/[a-z0-9][a-z0-9!#$&^_.+-]*$/
const mimeType = z.string().max(CAPS.mimeType).regex(MIME_TYPE)
const quotedName = z
  .string()
  .max(CAPS.mimeType)
  .regex(/^['"][ -~]*$/)

const nanAsNull = z.object({ count: z.int().positive(), paths: z.array(z.string()).max(CAPS.nullPaths) }).optional()

/** The schema of a list of parts of the state, or of processes. */
export const missingItems: z.ZodType<string[]> = z.array(z.string().max(CAPS.missingItemChars)).max(CAPS.missingItems)

/** The schema of a checkpoint. */
export const checkpointOnWire: z.ZodType<CheckpointOnWire> = z.object({
  grade: z.enum(['whole', 'partial', 'none']),
  lacks: missingItems,
})

/** Schemas of the frames that the harness sends. Unknown fields are dropped, unknown types ignored and counted. */
export const harnessFrames: {
  ready: z.ZodType<ReadyFrame>
  final_result: z.ZodType<FinalResultFrame>
  intermediate: z.ZodType<IntermediateFrame>
  value: z.ZodType<ValueFrame>
  error: z.ZodType<ErrorFrame>
  log: z.ZodType<LogFrame>
  stdout: z.ZodType<OutputFrame>
  stderr: z.ZodType<OutputFrame>
  file: z.ZodType<FileFrame>
  display: z.ZodType<DisplayFrame>
  tool_call: z.ZodType<ToolCallFrame>
  check_result: z.ZodType<CheckResultFrame>
  script_done: z.ZodType<ScriptDoneFrame>
  pong: z.ZodType<PongFrame>
  reset_done: z.ZodType<ResetDoneFrame>
} = {
  ready: z.object({
    type: z.literal('ready'),
    protocol: z.int(),
    python: z.string(),
    tools: z.object({ loaded: z.array(z.string()), failed: z.array(failedImport) }),
    preload: z.object({ loaded: z.array(z.string()), failed: z.array(failedImport), deferred: z.array(z.string()) }),
    checks: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
  }),
  final_result: z.object({
    type: z.literal('final_result'),
    execution_id: executionId,
    data: z.unknown(),
    nan_as_null: nanAsNull,
  }),
  intermediate: z.object({
    type: z.literal('intermediate'),
    execution_id: executionId,
    label: z.string(),
    data: z.unknown(),
    nan_as_null: nanAsNull,
  }),
  value: z.object({ type: z.literal('value'), execution_id: executionId, data: z.unknown(), nan_as_null: nanAsNull }),
  error: z.object({
    type: z.literal('error'),
    execution_id: executionId,
    message: z.string(),
    traceback: z.string().nullable().default(null),
    kind: z
      .string()
      .default('exception')
      .describe(
        'exception, exit, syntax, setup, memory, timeout, interrupted, output_limit, cancelled, crash, secrets or request',
      ),
  }),
  log: z.object({
    type: z.literal('log'),
    execution_id: executionId,
    message: z.string(),
    level: z.string().default('info'),
  }),
  stdout: z.object({ type: z.literal('stdout'), execution_id: executionId, text: z.string() }),
  stderr: z.object({ type: z.literal('stderr'), execution_id: executionId, text: z.string() }),
  file: z.object({
    type: z.literal('file'),
    execution_id: executionId,
    path: z.string(),
    size: z.int().nonnegative(),
    offset: z.int().nonnegative(),
    content_base64: z.string(),
  }),
  display: z.object({
    type: z.literal('display'),
    execution_id: executionId,
    kind: z.enum(['result', 'display']),
    data: z
      .record(mimeType, z.string())
      .refine((data) => Object.keys(data).length > 0 && Object.keys(data).length <= CAPS.displayTypes),
    left_out: z
      .array(z.union([mimeType, quotedName]))
      .max(CAPS.leftOut)
      .default([]),
    after: z.object({ stdout: z.int().nonnegative() }),
  }),
  tool_call: z.object({
    type: z.literal('tool_call'),
    execution_id: executionId,
    id: z.string().min(1).max(CAPS.callId),
    name: z.string().min(1).max(CAPS.toolName),
    line: z.int().positive().nullish(),
    args: z.record(z.string(), z.unknown()),
  }),
  check_result: z.object({
    type: z.literal('check_result'),
    execution_id: executionId,
    violations: z.array(
      z.object({
        code: z.string(),
        line: z.int().nonnegative(),
        column: z.int().nonnegative(),
        message: z.string(),
        hint: z.string(),
      }),
    ),
    whole: z.boolean().optional(),
    tools: z.array(z.string()).optional(),
  }),
  script_done: z.object({
    type: z.literal('script_done'),
    execution_id: executionId,
    ending: z
      .object({
        cause: z.enum(WIRE_CAUSES),
        exit_code: z.int().nullable(),
        signal: z.string().nullable(),
        by: z.enum(WIRE_PARTIES),
      })
      .optional(),
    duration_ms: z.number().nonnegative().default(0),
    stdout_bytes: z.int().nonnegative().default(0),
    stderr_bytes: z.int().nonnegative().default(0),
    limits_hit: z.array(z.string()).default([]),
    warnings: z.array(z.object({ code: z.string(), message: z.string() })).default([]),
    reusable: z.boolean().default(false),
    use: z.int().nonnegative().default(0),
    memory_kills: z.int().nonnegative().optional(),
    cpu_time_ms: z.number().nonnegative().optional(),
    in_setup: z.boolean().optional(),
    imported: z.array(z.string().max(CAPS.importName).regex(MODULE_NAME)).max(CAPS.imports).optional(),
    cell: z
      .object({
        state: z.enum(['kept', 'rolled-back', 'lost']),
        checkpoint: checkpointOnWire,
        missing: missingItems,
        ended: missingItems,
      })
      .optional(),
  }),
  pong: z.object({ type: z.literal('pong'), nonce: z.string() }),
  reset_done: z.object({ type: z.literal('reset_done'), nonce: z.string(), reusable: z.boolean() }),
}
