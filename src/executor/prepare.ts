import { randomBytes, randomUUID } from 'node:crypto'
import {
  CAPS,
  type CellOnWire,
  encodeExecute,
  encodeFrame,
  findHelper,
  type LineInParts,
  type PythonToolSource,
} from '../protocol/index.ts'
import type { Sandbox } from '../sandbox/index.ts'
import { formatValue } from '../support/index.ts'
import { checkCollectLimits, onWire } from './collect-limits.ts'
import type { CollectCaps } from './collected-files.ts'
import { checkInputs } from './inputs.ts'
import { checkCollect, checkFiles, type StagedFile } from './input-files.ts'
import { invalid } from './invalid.ts'
import { lesserLimits, type RunLimits } from './limits.ts'
import type { CheckRequest } from './check-request.ts'
import { type CellEnd, ExecutionMode, type RunRequest } from './result.ts'
import { maxApprovalSec } from './tool-clock.ts'
import type { ToolEndpoint } from './tool-endpoint.ts'
import type { RunTools } from './tool-port.ts'
import { checkHidden, checkRequiredSecrets, checkSecrets } from './secret-names.ts'
import { checkStdin } from './stdin.ts'

const MAX_ID_LENGTH = 256
const TOKEN_BYTES = 32
/** The maximum size of an `execute` line. Larger data belongs in files. */
const MAX_EXECUTE_BYTES = 32 * 1024 * 1024

/** A request for one checked-out sandbox. */
export type SandboxRunRequest = RunRequest & {
  readonly sandbox: Sandbox
  /** The endpoint for tool calls over a WebSocket. Default: none, calls come over the channel. */
  readonly toolEndpoint?: ToolEndpoint | undefined
  /** The turn of a cell in its session. Default: it is a script. */
  readonly cell?: CellTurn | undefined
}

/** The turn of one cell in its session. */
export interface CellTurn {
  /** The id of the session's activity. */
  readonly session: string
  /** From 1. */
  readonly number: number
  /** After an exception, `keep` leaves the state as the cell left it; `rollback` restores the state before the cell. */
  readonly onError: 'keep' | 'rollback'
  /** Values that earlier cells had to hide, by name. */
  readonly hidden: readonly Readonly<Record<string, string>>[]
  /** The same object for all cells of a session and its branches, which may read each other's secrets. */
  readonly group: CellGroup
  /** Called once when the request of the cell is on its way: what the session sends from then on arrives after it. */
  readonly onSent: () => void
  /** Called once with the end of the cell, if it began. */
  readonly onEnd: (end: CellEnd) => void
}

/** The state that all cells of a session and its branches share. */
export interface CellGroup {
  /** Bytes of the lines of all displays so far. */
  displaysBytes: number
}

/** A request that is ready to run. */
export interface PreparedRun {
  readonly sandbox: Sandbox
  readonly executionId: string
  readonly mode: ExecutionMode
  readonly timeoutSec: number
  readonly maxToolWaitSec: number
  readonly maxOutputBytes: number
  /** True if the run has less memory than its sandbox; a limit of the address space enforces that. */
  readonly asksLessMemory: boolean
  /** The CPUs of the run, if they are fewer than those of its sandbox. */
  readonly fewerCpus?: number | undefined
  /** The values to redact in all output of the run: its secrets, and the values in `hide`. */
  readonly hidden: readonly Readonly<Record<string, string>>[]
  readonly files: readonly StagedFile[]
  /** True if files were requested, so that `file` frames are expected. */
  readonly collects: boolean
  /** Their bounds. */
  readonly collectCaps: CollectCaps
  /** The tools that the script may call. */
  readonly tools: RunTools | undefined
  /** The endpoint for their calls, with the token that the host must present there; undefined if they use the channel. */
  readonly endpoint: (ToolEndpoint & { readonly token: string }) | undefined
  /** True for a check, which runs nothing and answers with violations. */
  readonly checks: boolean
  /** The encoded `execute` or `check` frame, and the offset of its large fields; a check has none. */
  readonly execute: LineInParts
  readonly signal: AbortSignal | undefined
  /** The turn of a cell; undefined for a script. */
  readonly cell: CellTurn | undefined
  /** Called with the modules that the run loaded. */
  readonly onImports?: ((modules: readonly string[]) => void) | undefined
}

/**
 * Checks a request to run, before anything is sent.
 * @throws SandglassError `invalid_request` or `limit_not_enforceable`, naming the field.
 */
export function prepare(request: SandboxRunRequest, mode: ExecutionMode, limits: RunLimits): PreparedRun {
  if (typeof request !== 'object' || request === null)
    throw invalid('request', `${formatValue(request)} is not an object`)
  const { sandbox, signal } = request
  if (typeof sandbox !== 'object' || sandbox === null)
    throw invalid('sandbox', `${formatValue(sandbox)} is not a sandbox`)
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid('signal', 'it is not an AbortSignal')
  const executionId = checkExecutionId(request.executionId)
  const secrets = checkSecrets(request.secrets)
  const collect = checkCollect(request.collect)
  const collectCaps = checkCollectLimits(request.collectLimits)
  const lesser = lesserLimits(limits.asked, sandbox)
  const given = checkTools(request.tools)
  const sources = checkSources(given?.sources)
  const tools = given?.signatures.length === 0 ? undefined : given
  const endpoint =
    request.toolEndpoint === undefined || tools === undefined
      ? undefined
      : { ...request.toolEndpoint, token: randomBytes(TOKEN_BYTES).toString('base64url') }
  const inputs = checkInputs(request.inputs)
  refuseSameNames(inputs, given)
  const head = {
    execution_id: executionId,
    mode,
    timeout_sec: limits.timeoutSec,
    max_output_bytes: limits.maxOutputBytes,
    secrets,
    required_secrets: [
      ...new Set([
        ...checkRequiredSecrets(request.requiredSecrets),
        ...checkRequiredSecrets(given?.requiredSecrets, 'secrets of the Python tools'),
      ]),
    ],
    collect,
    ...(request.collectLimits === undefined ? {} : { collect_limits: onWire(collectCaps) }),
    limits: lesser,
    ...(tools === undefined
      ? {}
      : { tools: [...tools.signatures], max_tool_wait_sec: limits.maxToolWaitSec + maxApprovalSec(tools) }),
    ...(endpoint === undefined ? {} : { tool_endpoint: { host: endpoint.host, token: endpoint.token } }),
    ...cellFields(request.cell),
  }
  const execute = encodeExecute(head, {
    script: checkScript(request.script),
    inputs,
    ...(sources.length === 0 ? {} : { tool_sources: [...sources] }),
    ...(request.stdin === undefined ? {} : { stdin_base64: encodeStdin(request.stdin) }),
    ...wrapperCode(request),
  })
  if (execute.line.length > MAX_EXECUTE_BYTES) {
    throw invalid(
      'request',
      `${execute.line.length} bytes; at most ${MAX_EXECUTE_BYTES} are allowed, pass data as files`,
    )
  }
  return {
    sandbox,
    executionId,
    mode,
    timeoutSec: limits.timeoutSec,
    maxToolWaitSec: limits.maxToolWaitSec,
    maxOutputBytes: limits.maxOutputBytes,
    asksLessMemory: lesser.memory_bytes !== undefined,
    fewerCpus: (limits.asked.cpus ?? Infinity) < sandbox.info.limits.cpus ? limits.asked.cpus : undefined,
    hidden: [checkHidden(request.hide), secrets, ...(request.cell?.hidden ?? [])],
    files: checkFiles(request.files),
    collects: collect.length > 0,
    collectCaps,
    tools,
    endpoint,
    checks: false,
    cell: request.cell,
    execute,
    signal,
  }
}

/** A request to check a script in one checked-out sandbox. */
export interface SandboxCheckRequest extends CheckRequest {
  readonly sandbox: Sandbox
}

/**
 * Checks a request to check a script.
 * @throws SandglassError `invalid_request`, naming the field.
 */
export function prepareCheck(request: SandboxCheckRequest): PreparedRun {
  const { sandbox, signal, mode = ExecutionMode.INTERACTIVE, policy, whole, tools = [], listTools = false } = request
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid('signal', 'it is not an AbortSignal')
  if (!CHECKED_POLICIES.includes(policy) && !(policy === 'off' && (whole !== undefined || listTools)))
    throw invalid('policy', `${formatValue(policy)} is not a policy; use standard or strict`)
  const executionId = checkExecutionId(request.executionId)
  const line = encodeFrame({
    type: 'check',
    execution_id: executionId,
    script: checkScript(request.script),
    mode,
    policy,
    timeout_sec: CHECK_TIMEOUT_SEC,
    ...(whole === undefined ? {} : { whole }),
    names: [...(request.names ?? [])],
    allow_modules: [...(request.allowModules ?? [])],
    ...(request.hasFiles === true ? { files: true } : {}),
    ...(listTools ? { list_tools: true } : {}),
    tools: [...tools],
    ...wrapperCode(request),
  })
  if (line.length > MAX_EXECUTE_BYTES) throw invalid('script', `${line.length} bytes; at most ${MAX_EXECUTE_BYTES}`)
  return {
    sandbox,
    executionId,
    mode: ExecutionMode.INTERACTIVE,
    timeoutSec: CHECK_TIMEOUT_SEC,
    maxToolWaitSec: 0,
    maxOutputBytes: CAPS.checkBytes,
    asksLessMemory: false,
    hidden: [],
    files: [],
    collects: false,
    collectCaps: CAPS,
    tools: undefined,
    endpoint: undefined,
    checks: true,
    cell: undefined,
    execute: { line, bodyAt: line.length },
    signal,
  }
}

const CHECKED_POLICIES: readonly unknown[] = ['standard', 'strict']
/** The timeout of a check. Only a script that is made to be slow needs longer. */
const CHECK_TIMEOUT_SEC = 10

/** Returns the script without its byte order mark, which belongs to the encoding. */
function checkScript(given: unknown): string {
  if (typeof given !== 'string') throw invalid('script', `${formatValue(given)} is not a string`)
  return given.startsWith('\uFEFF') ? given.slice(1) : given
}

function cellFields(cell: CellTurn | undefined): { session?: string; cell?: CellOnWire } {
  if (cell === undefined) return {}
  return { session: cell.session, cell: { number: cell.number, on_error: cell.onError } }
}

/** The wrapper code around the script, if any. */
function wrapperCode(given: { readonly preamble?: unknown; readonly postamble?: unknown }): {
  preamble?: string
  postamble?: string
} {
  const { preamble = '', postamble = '' } = given
  if (typeof preamble !== 'string') throw invalid('preamble', `${formatValue(preamble)} is not a string`)
  if (typeof postamble !== 'string') throw invalid('postamble', `${formatValue(postamble)} is not a string`)
  return { ...(preamble === '' ? {} : { preamble }), ...(postamble === '' ? {} : { postamble }) }
}

function encodeStdin(given: unknown): string {
  const { buffer, byteOffset, length } = checkStdin(given)
  return Buffer.from(buffer, byteOffset, length).toString('base64')
}

function checkTools(given: unknown): RunTools | undefined {
  if (given === undefined) return undefined
  if (typeof given !== 'object' || given === null || !('open' in given) || !('signatures' in given)) {
    throw invalid('tools', 'they are not the tools of a run; make them with bridgedTools(), or give tools to sg.run()')
  }
  return given as RunTools
}

function checkSources(sources: readonly PythonToolSource[] = []): readonly PythonToolSource[] {
  if (sources.length > CAPS.toolSources) {
    throw invalid('tools', `${sources.length} Python tools; at most ${CAPS.toolSources} are allowed in one run`)
  }
  let total = 0
  for (const { name, source } of sources) {
    const bytes = Buffer.byteLength(source)
    total += bytes
    if (bytes <= CAPS.toolSourceBytes) continue
    throw invalid(
      'tools',
      `the source of the Python tool ${formatValue(name)} has ${bytes} bytes; at most ${CAPS.toolSourceBytes} are allowed`,
    )
  }
  if (total > MAX_EXECUTE_BYTES) {
    throw invalid(
      'tools',
      `the sources of the Python tools have ${total} bytes; at most ${MAX_EXECUTE_BYTES} in one run`,
    )
  }
  return sources
}

function refuseSameNames(inputs: Readonly<Record<string, unknown>>, tools: RunTools | undefined): void {
  const kinds: [string, readonly { readonly name: string }[]][] = [
    ['a tool', tools?.signatures ?? []],
    ['a Python tool', tools?.sources ?? []],
  ]
  for (const [kind, named] of kinds) {
    const both = named.find(({ name }) => Object.hasOwn(inputs, name))
    if (both !== undefined)
      throw invalid('inputs', `${formatValue(both.name)} is the name of ${kind}; rename the input`)
  }
  if (kinds.every(([, named]) => named.length === 0)) return
  const helper = Object.keys(inputs).find((name) => findHelper(name)?.when === 'tools')
  if (helper !== undefined)
    throw invalid('inputs', `${formatValue(helper)} is a function of every script that has tools`)
}

/** Checks an execution id. It is opaque text: it is echoed and compared, never used as a key, a path or a name. */
function checkExecutionId(given: unknown): string {
  if (given === undefined || given === null) return randomUUID()
  if (typeof given !== 'string') throw invalid('executionId', `${formatValue(given)} is not a string`)
  if (given.trim() === '') throw invalid('executionId', 'it is empty or blank')
  if (given.length > MAX_ID_LENGTH) throw invalid('executionId', `it has more than ${MAX_ID_LENGTH} characters`)
  if (/\p{Cc}/u.test(given)) throw invalid('executionId', 'it holds a control character')
  if (!given.isWellFormed()) throw invalid('executionId', 'it holds a lone surrogate')
  return given
}
