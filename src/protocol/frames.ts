import { z } from 'zod'

/** Version of the wire protocol; a harness that speaks another one is refused. */
export const PROTOCOL_VERSION = 1
/** Bytes of file content in one frame, before base64, in either direction. */
export const FILE_CHUNK_BYTES: number = 192 * 1024
/** Deepest nesting of a value in either direction. */
export const MAX_DEPTH = 200
/** Frame types that `maxOutputBytes` does not count; each has a cap of its own. */
export const UNCOUNTED_FRAMES: ReadonlySet<string> = new Set([
  'file',
  'tool_call',
  'check_result',
  'script_done',
  'ready',
  'pong',
  'reset_done',
])

// ── host → harness ───────────────────────────────────────────────────────────────────────────────────────────────

/** One parameter of a tool, as a script writes it. */
export interface ToolParameter {
  /** Name in Python. */
  name: string
  /** Name in the tool's own schema, where it is another one. */
  key?: string | undefined
  /** Python annotation, for example `list[str] | None`. */
  type: string
  required: boolean
  /** Whether `None` is a value; otherwise it stands for "left out" where the parameter is not required. */
  nullable: boolean
  /** Python default; absent where leaving it out is left to the tool. */
  default?: unknown
}

/** What the harness makes the function of a tool from. */
export interface ToolSignature {
  /** Name in Python. */
  name: string
  params: ToolParameter[]
  /** Whether it takes keywords beyond `params`. */
  more: boolean
  /** Python annotation of what it returns. */
  returns: string
  /** Docstring, and what `describe_tool` prints below the signature. */
  doc: string
  /** Python source of the classes that annotations name, or nothing. */
  types: string
}

/** What the checker knows of a tool beside its signature: JSON Schemas without references, `true` for anything. */
export interface CheckedTool extends ToolSignature {
  /** By the Python name of the parameter. */
  schemas: Record<string, unknown>
  result: unknown
}

/** Run one script. Answered by events and exactly one `script_done`. */
export interface ExecuteFrame {
  type: 'execute'
  execution_id: string
  script: string
  mode: 'plan' | 'interactive'
  timeout_sec: number
  max_output_bytes: number
  inputs: Record<string, unknown>
  secrets: Record<string, string>
  required_secrets: string[]
  collect: string[]
  /** Asks for less than the sandbox has; absent means all of it. */
  limits: { memory_bytes?: number | undefined; pids?: number | undefined }
  /** Host tools that the script may call. */
  tools?: ToolSignature[] | undefined
}

/** Check one script without running any of it. Answered by one `check_result` and one `script_done`. */
export interface CheckFrame {
  type: 'check'
  execution_id: string
  script: string
  mode: 'plan' | 'interactive'
  policy: 'standard' | 'strict'
  timeout_sec: number
  /** Names that are there beside builtins, helpers and tools: inputs. */
  names: string[]
  /** Modules that `strict` admits beside its own. */
  allow_modules: string[]
  tools: CheckedTool[]
}

/** Why a tool call came to nothing. */
export interface ToolFailure {
  code: string
  message: string
}

/** Answer to a `tool_call` of the same id: `result`, or `error`. */
export interface ToolResultFrame {
  type: 'tool_result'
  execution_id: string
  id: string
  result?: unknown
  error?: ToolFailure | undefined
}

/** Put a piece of a file into the workspace, before the `execute` of the same id. */
export interface FilePutFrame {
  type: 'file_put'
  execution_id: string
  path: string
  mode: number
  offset: number
  content_base64: string
}

/** End the run of this id. Ignored when no such run is under way. */
export interface CancelFrame {
  type: 'cancel'
  execution_id: string
}

/** Ask for a `pong`. */
export interface PingFrame {
  type: 'ping'
  nonce: string
}

/** Kill and wipe between runs. Answered by `reset_done`. */
export interface ResetFrame {
  type: 'reset'
  nonce: string
}

/** A frame from the host, as it stands on the wire. */
export type HostFrame =
  | ExecuteFrame
  | CheckFrame
  | ToolResultFrame
  | FilePutFrame
  | CancelFrame
  | PingFrame
  | ResetFrame

// ── harness → host ───────────────────────────────────────────────────────────────────────────────────────────────

/** Something that could not be loaded, and why. */
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
  /** What the harness found in force around itself: name to value. */
  checks: Record<string, string | number | boolean | null>
}

/** `emit_result` was called. */
export interface FinalResultFrame {
  type: 'final_result'
  execution_id: string
  data: unknown
}

/** `emit_intermediate` was called. */
export interface IntermediateFrame {
  type: 'intermediate'
  execution_id: string
  label: string
  data: unknown
}

/** The script did not get through. */
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

/** The script called a host tool and waits for its `tool_result`. */
export interface ToolCallFrame {
  type: 'tool_call'
  execution_id: string
  /** Chosen by the script's process: proves nothing. */
  id: string
  name: string
  /** By the names of the tool's own schema. */
  args: Record<string, unknown>
}

/** Something wrong with a script. */
export interface ViolationOnWire {
  code: string
  /** From 1, as Python counts. */
  line: number
  /** From 0, in characters. */
  column: number
  message: string
  hint: string
}

/** What a check found, in the order of lines; empty when nothing is wrong. */
export interface CheckResultFrame {
  type: 'check_result'
  execution_id: string
  violations: ViolationOnWire[]
}

/** A piece of a collected file. Pieces of a file come in order, files one after the other. */
export interface FileFrame {
  type: 'file'
  execution_id: string
  path: string
  size: number
  offset: number
  content_base64: string
}

/** How the process of a script ended. */
export interface WireEnding {
  cause: 'exit' | 'signal' | 'timeout' | 'output-limit' | 'cancelled' | 'not-started'
  exit_code: number | null
  signal: string | null
  by: 'script' | 'harness' | 'host' | 'kernel' | 'unknown'
}

/** Everything that the script started is dead and wiped; the last frame of a run. */
export interface ScriptDoneFrame {
  type: 'script_done'
  execution_id: string
  ending?: WireEnding | undefined
  duration_ms: number
  stdout_bytes: number
  stderr_bytes: number
  limits_hit: string[]
  warnings: { code: string; message: string }[]
  /** Whether all was killed, wiped and found unchanged, so that the sandbox may serve again. */
  reusable: boolean
  /** Scripts that this sandbox has run, this one included. */
  use: number
  /** Processes that the kernel killed for memory during the run; absent where the harness cannot see it. */
  memory_kills?: number | undefined
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

/** A frame from the harness, as it stands on the wire. */
export type HarnessFrame =
  | ReadyFrame
  | FinalResultFrame
  | IntermediateFrame
  | ErrorFrame
  | LogFrame
  | OutputFrame
  | FileFrame
  | ToolCallFrame
  | CheckResultFrame
  | ScriptDoneFrame
  | PongFrame
  | ResetDoneFrame

// ── schemas ──────────────────────────────────────────────────────────────────────────────────────────────────────

const executionId = z.string().min(1).max(256)
const nonce = z.string().max(64)
const failedImport = z.object({ name: z.string(), message: z.string() })

const toolSignature = {
  name: z.string(),
  params: z.array(
    z.strictObject({
      name: z.string(),
      key: z.string().optional(),
      type: z.string(),
      required: z.boolean(),
      nullable: z.boolean(),
      default: z.unknown().optional(),
    }),
  ),
  more: z.boolean(),
  returns: z.string(),
  doc: z.string(),
  types: z.string(),
}

/** Schemas of the frames that the host sends. */
export const hostFrames: {
  execute: z.ZodType<ExecuteFrame>
  check: z.ZodType<CheckFrame>
  tool_result: z.ZodType<ToolResultFrame>
  file_put: z.ZodType<FilePutFrame>
  cancel: z.ZodType<CancelFrame>
  ping: z.ZodType<PingFrame>
  reset: z.ZodType<ResetFrame>
} = {
  execute: z.strictObject({
    type: z.literal('execute'),
    execution_id: executionId,
    script: z.string(),
    mode: z.enum(['plan', 'interactive']),
    timeout_sec: z.number().positive(),
    max_output_bytes: z.int().positive(),
    inputs: z.record(z.string(), z.unknown()),
    secrets: z.record(z.string(), z.string()),
    required_secrets: z.array(z.string()),
    collect: z.array(z.string()),
    limits: z.strictObject({ memory_bytes: z.int().positive().optional(), pids: z.int().positive().optional() }),
    tools: z.array(z.strictObject(toolSignature)).optional(),
  }),
  check: z.strictObject({
    type: z.literal('check'),
    execution_id: executionId,
    script: z.string(),
    mode: z.enum(['plan', 'interactive']),
    policy: z.enum(['standard', 'strict']),
    timeout_sec: z.number().positive(),
    names: z.array(z.string()),
    allow_modules: z.array(z.string()),
    tools: z.array(
      z.strictObject({ ...toolSignature, schemas: z.record(z.string(), z.unknown()), result: z.unknown() }),
    ),
  }),
  tool_result: z.strictObject({
    type: z.literal('tool_result'),
    execution_id: executionId,
    id: z.string(),
    result: z.unknown().optional(),
    error: z.strictObject({ code: z.string(), message: z.string() }).optional(),
  }),
  file_put: z.strictObject({
    type: z.literal('file_put'),
    execution_id: executionId,
    path: z.string(),
    mode: z.int().min(0).max(0o777),
    offset: z.int().nonnegative(),
    content_base64: z.string(),
  }),
  cancel: z.strictObject({ type: z.literal('cancel'), execution_id: executionId }),
  ping: z.strictObject({ type: z.literal('ping'), nonce }),
  reset: z.strictObject({ type: z.literal('reset'), nonce }),
}

/** Schemas of the frames that the harness sends. Unknown fields are dropped, unknown types ignored and counted. */
export const harnessFrames: {
  ready: z.ZodType<ReadyFrame>
  final_result: z.ZodType<FinalResultFrame>
  intermediate: z.ZodType<IntermediateFrame>
  error: z.ZodType<ErrorFrame>
  log: z.ZodType<LogFrame>
  stdout: z.ZodType<OutputFrame>
  stderr: z.ZodType<OutputFrame>
  file: z.ZodType<FileFrame>
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
  final_result: z.object({ type: z.literal('final_result'), execution_id: executionId, data: z.unknown() }),
  intermediate: z.object({
    type: z.literal('intermediate'),
    execution_id: executionId,
    label: z.string(),
    data: z.unknown(),
  }),
  error: z.object({
    type: z.literal('error'),
    execution_id: executionId,
    message: z.string(),
    traceback: z.string().nullable().default(null),
    kind: z
      .string()
      .default('exception')
      .describe('exception, exit, syntax, memory, timeout, output_limit, cancelled, crash, secrets or request'),
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
  tool_call: z.object({
    type: z.literal('tool_call'),
    execution_id: executionId,
    id: z.string().min(1).max(64),
    name: z.string().min(1).max(256),
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
  }),
  script_done: z.object({
    type: z.literal('script_done'),
    execution_id: executionId,
    ending: z
      .object({
        cause: z.enum(['exit', 'signal', 'timeout', 'output-limit', 'cancelled', 'not-started']),
        exit_code: z.int().nullable(),
        signal: z.string().nullable(),
        by: z.enum(['script', 'harness', 'host', 'kernel', 'unknown']),
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
  }),
  pong: z.object({ type: z.literal('pong'), nonce: z.string() }),
  reset_done: z.object({ type: z.literal('reset_done'), nonce: z.string(), reusable: z.boolean() }),
}
