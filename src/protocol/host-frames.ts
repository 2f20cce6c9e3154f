import { z } from 'zod'

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
  /** Of a Python tool: taken by position, or by keyword, alone. */
  kind?: 'positional' | 'keyword' | undefined
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
  /** Whether it takes any number of arguments by position beyond `params`; absent: no. */
  rest?: boolean | undefined
  /** Whether a call in async code gives something to await; absent: yes, as every host tool does. */
  awaits?: boolean | undefined
}

/** A tool that is Python itself: its function runs in the process of the script. */
export interface PythonToolSource {
  /** Of the function. */
  name: string
  source: string
  /** What `describe_tool` returns. */
  stub: string
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
  /** Tools that the run brings along as Python source. */
  tool_sources?: PythonToolSource[] | undefined
  /** Python that is run before the script, in the same globals; the script keeps its line numbers. */
  preamble?: string | undefined
  /** The same behind a script that got through. */
  postamble?: string | undefined
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
  /** What is run around the script: not checked, but what it binds is there. */
  preamble?: string | undefined
  postamble?: string | undefined
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

const executionId = z.string().min(1).max(256)
const nonce = z.string().max(64)

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
    tool_sources: z.array(z.strictObject({ name: z.string(), source: z.string(), stub: z.string() })).optional(),
    preamble: z.string().optional(),
    postamble: z.string().optional(),
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
