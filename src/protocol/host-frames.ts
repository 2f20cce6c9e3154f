import { z } from 'zod'
import { CAPS } from './caps.ts'

/** One parameter of a tool, as a script writes it. */
export interface ToolParameter {
  /** Name in Python. */
  name: string
  /** Name in the tool's own schema, if it differs. */
  key?: string | undefined
  /** Python annotation, for example `list[str] | None`. */
  type: string
  required: boolean
  /** True if `None` is a value; otherwise `None` means "left out" if the parameter is optional. */
  nullable: boolean
  /** Python default; absent if the tool itself handles a missing value. */
  default?: unknown
  /** Only for Python tools: positional-only or keyword-only. */
  kind?: 'positional' | 'keyword' | undefined
}

/** The signature from which the harness makes the function of a tool. */
export interface ToolSignature {
  /** Name in Python. */
  name: string
  params: ToolParameter[]
  /** True if it takes keywords beyond `params`. */
  more: boolean
  /** Python annotation of its result. */
  returns: string
  /** Docstring. `describe_tool` returns it below the signature. */
  doc: string
  /** Python source of the classes that annotations name, or nothing. */
  types: string
}

/** A tool for the checker: its signature, and JSON Schemas without references, `true` for anything. */
export interface CheckedTool extends ToolSignature {
  /** By the Python name of the parameter. */
  schemas: Record<string, unknown>
  result: unknown
  /** True if it takes any number of arguments by position beyond `params`. Default false. */
  rest?: boolean | undefined
  /** False if a call in async code returns its result directly. Default true: calls of host tools return an awaitable. */
  awaits?: boolean | undefined
}

/** A Python tool: its function runs in the process of the script. */
export interface PythonToolSource {
  /** The name of the function. */
  name: string
  source: string
  /** The text that `describe_tool` returns. */
  stub: string
}

/** Bounds of the collected files of a run; absent: `files`, `fileBytes` and `totalBytes` of the caps. */
export interface CollectLimitsOnWire {
  max_files?: number | undefined
  max_file_bytes?: number | undefined
  max_total_bytes?: number | undefined
}

/** The fields of an `execute` that are small. */
export interface ExecuteHead {
  execution_id: string
  mode: 'plan' | 'interactive'
  timeout_sec: number
  max_output_bytes: number
  secrets: Record<string, string>
  required_secrets: string[]
  collect: string[]
  collect_limits?: CollectLimitsOnWire | undefined
  /** Lower limits than those of the sandbox; absent: those of the sandbox. */
  limits: { memory_bytes?: number | undefined; pids?: number | undefined }
  /** Host tools that the script may call. */
  tools?: ToolSignature[] | undefined
  /** The time by which calls of host tools may move the deadline, in total; absent: none. */
  max_tool_wait_sec?: number | undefined
  /** The script's process listens at this address, and tool calls use the WebSocket of the client that presents the token; absent: the channel. */
  tool_endpoint?: { host: string; token: string } | undefined
  /** In a workspace: the session whose cell this is; absent: it is a script. */
  session?: string | undefined
  cell?: CellOnWire | undefined
}

/** The fields of a cell that no script has. */
export interface CellOnWire {
  /** From 1; names it in tracebacks. The host counts, because a count in the session would roll back with it. */
  number: number
  /** After an exception, `keep` leaves the state as the cell left it; `rollback` restores the state before the cell. */
  on_error: 'keep' | 'rollback'
}

/** The fields of an `execute` that can be large. */
export interface ExecuteBody {
  script: string
  inputs: Record<string, unknown>
  /** Python tools of this run. */
  tool_sources?: PythonToolSource[] | undefined
  /** The bytes that the script's standard input reads; absent: none. */
  stdin_base64?: string | undefined
  /** Wrapper code that runs before the script, in the same globals. The script keeps its line numbers. */
  preamble?: string | undefined
  /** Wrapper code that runs after a script without an error. */
  postamble?: string | undefined
}

/** Run one script. Answered by events and exactly one `script_done`. */
export interface ExecuteFrame extends ExecuteHead, ExecuteBody {
  type: 'execute'
}

/** Check one script without running any of it. Answered by one `check_result` and one `script_done`. */
export interface CheckFrame {
  type: 'check'
  execution_id: string
  script: string
  mode: 'plan' | 'interactive'
  /** `off` only decides whether `whole` is the script. */
  policy: 'off' | 'standard' | 'strict'
  timeout_sec: number
  /** The text in which `script` was found. If it is Python with an effect, it is checked in place of `script`. */
  whole?: string | undefined
  /** Names that exist in addition to builtins, helpers and tools: inputs. */
  names: string[]
  /** Modules that `strict` admits in addition to its own list. */
  allow_modules: string[]
  /** True if the script has files: `strict` then admits `open` and the modules for files. */
  files?: boolean | undefined
  /** Asks for the names of the tools that the script may call, under any policy. */
  list_tools?: boolean | undefined
  tools: CheckedTool[]
  /** Wrapper code: it is not checked, but the names that it binds exist. */
  preamble?: string | undefined
  postamble?: string | undefined
}

/** The reason why a tool call failed. */
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

/**
 * Reports how long calls of a run have executed on the host or waited there for approval, and whether one still does. Moves the deadline
 * by that time minus the processor time of the script during it. Ignored if no such run is active.
 */
export interface ToolTimeFrame {
  type: 'tool_time'
  execution_id: string
  /** The time in which at least one call executed or waited, since the start of the run. */
  executed_ms: number
  executing: boolean
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

/** End the run of this id. Ignored if no such run is active. */
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

/** A frame from the host, as it is on the wire. */
export type HostFrame =
  | ExecuteFrame
  | CheckFrame
  | ToolResultFrame
  | ToolTimeFrame
  | FilePutFrame
  | CancelFrame
  | PingFrame
  | ResetFrame

const executionId = z.string().min(1).max(CAPS.executionId)
const nonce = z.string().max(CAPS.nonce)

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
      kind: z.enum(['positional', 'keyword']).optional(),
    }),
  ),
  more: z.boolean(),
  returns: z.string(),
  doc: z.string(),
  types: z.string(),
}

/** Schemas of {@link ExecuteHead}. */
export const executeHead: { [Name in keyof ExecuteHead]-?: z.ZodType<ExecuteHead[Name]> } = {
  execution_id: executionId,
  mode: z.enum(['plan', 'interactive']),
  timeout_sec: z.number().positive(),
  max_output_bytes: z.int().positive(),
  secrets: z.record(z.string(), z.string()),
  required_secrets: z.array(z.string()),
  collect: z.array(z.string()),
  collect_limits: z
    .strictObject({
      max_files: z.int().positive().optional(),
      max_file_bytes: z.int().positive().optional(),
      max_total_bytes: z.int().positive().optional(),
    })
    .optional(),
  limits: z.strictObject({ memory_bytes: z.int().positive().optional(), pids: z.int().positive().optional() }),
  tools: z.array(z.strictObject(toolSignature)).optional(),
  max_tool_wait_sec: z.number().nonnegative().optional(),
  tool_endpoint: z.strictObject({ host: z.string(), token: z.string() }).optional(),
  session: executionId.optional(),
  cell: z.strictObject({ number: z.int().positive(), on_error: z.enum(['keep', 'rollback']) }).optional(),
}

/** Schemas of the frames that the host sends. */
export const hostFrames: {
  execute: z.ZodType<ExecuteFrame>
  check: z.ZodType<CheckFrame>
  tool_result: z.ZodType<ToolResultFrame>
  tool_time: z.ZodType<ToolTimeFrame>
  file_put: z.ZodType<FilePutFrame>
  cancel: z.ZodType<CancelFrame>
  ping: z.ZodType<PingFrame>
  reset: z.ZodType<ResetFrame>
} = {
  execute: z.strictObject({
    type: z.literal('execute'),
    ...executeHead,
    script: z.string(),
    inputs: z.record(z.string(), z.unknown()),
    tool_sources: z.array(z.strictObject({ name: z.string(), source: z.string(), stub: z.string() })).optional(),
    stdin_base64: z.string().optional(),
    preamble: z.string().optional(),
    postamble: z.string().optional(),
  }),
  check: z.strictObject({
    type: z.literal('check'),
    execution_id: executionId,
    script: z.string(),
    mode: z.enum(['plan', 'interactive']),
    policy: z.enum(['off', 'standard', 'strict']),
    timeout_sec: z.number().positive(),
    whole: z.string().optional(),
    names: z.array(z.string()),
    allow_modules: z.array(z.string()),
    files: z.boolean().optional(),
    list_tools: z.boolean().optional(),
    tools: z.array(
      z.strictObject({
        ...toolSignature,
        schemas: z.record(z.string(), z.unknown()),
        result: z.unknown(),
        rest: z.boolean().optional(),
        awaits: z.boolean().optional(),
      }),
    ),
    preamble: z.string().optional(),
    postamble: z.string().optional(),
  }),
  tool_result: z.strictObject({
    type: z.literal('tool_result'),
    execution_id: executionId,
    id: z.string(),
    result: z.unknown().optional(),
    error: z.strictObject({ code: z.string(), message: z.string() }).optional(),
  }),
  tool_time: z.strictObject({
    type: z.literal('tool_time'),
    execution_id: executionId,
    executed_ms: z.number().nonnegative(),
    executing: z.boolean(),
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
