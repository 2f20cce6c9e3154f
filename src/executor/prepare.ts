import { randomUUID } from 'node:crypto'
import { CAPS, encodeFrame, type PythonToolSource } from '../protocol/index.ts'
import type { Sandbox } from '../sandbox/index.ts'
import { checkInputs } from './inputs.ts'
import { checkCollect, checkFiles, type StagedFile } from './input-files.ts'
import { invalid, shown } from './invalid.ts'
import { lesserLimits, type RunLimits } from './limits.ts'
import type { CheckRequest } from './check-request.ts'
import { ExecutionMode, type RunRequest } from './result.ts'
import type { RunTools } from './tool-port.ts'
import { checkRequiredSecrets, checkSecrets } from './secret-names.ts'

const MAX_ID_LENGTH = 256
/** A whole `execute` line. More than that belongs into files. */
const MAX_EXECUTE_BYTES = 32 * 1024 * 1024

/** A request for one checked-out sandbox. */
export type SandboxRunRequest = RunRequest & { readonly sandbox: Sandbox }

/** A request that can be run as it stands. */
export interface PreparedRun {
  readonly sandbox: Sandbox
  readonly executionId: string
  readonly mode: ExecutionMode
  readonly timeoutSec: number
  readonly maxOutputBytes: number
  /** Whether the run has less memory than its sandbox, which a limit of its address space enforces. */
  readonly asksLessMemory: boolean
  readonly secrets: Readonly<Record<string, string>>
  readonly files: readonly StagedFile[]
  /** Whether files were asked for, so that `file` frames are expected. */
  readonly collects: boolean
  /** What the script may call. */
  readonly tools: RunTools | undefined
  /** Whether it is a check, which runs nothing and answers with violations. */
  readonly checks: boolean
  /** The `execute` frame as it goes over the wire. */
  readonly execute: Uint8Array
  readonly signal: AbortSignal | undefined
}

/**
 * Checks everything before anything is sent.
 * @throws SandglassError `invalid_request` or `limit_not_enforceable`, naming the field.
 */
export function prepare(request: SandboxRunRequest, mode: ExecutionMode, limits: RunLimits): PreparedRun {
  if (typeof request !== 'object' || request === null) throw invalid('request', `${shown(request)} is no object`)
  const { sandbox, signal } = request
  if (typeof sandbox !== 'object' || sandbox === null) throw invalid('sandbox', `${shown(sandbox)} is no sandbox`)
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid('signal', 'it is no AbortSignal')
  const executionId = checkExecutionId(request.executionId)
  const secrets = checkSecrets(request.secrets)
  const collect = checkCollect(request.collect)
  const lesser = lesserLimits(limits.asked, sandbox)
  const given = checkTools(request.tools)
  const sources = checkSources(given?.sources)
  const tools = given?.signatures.length === 0 ? undefined : given
  const inputs = checkInputs(request.inputs)
  refuseSameNames(inputs, given)
  const execute = encodeFrame({
    type: 'execute',
    execution_id: executionId,
    script: checkScript(request.script),
    mode,
    timeout_sec: limits.timeoutSec,
    max_output_bytes: limits.maxOutputBytes,
    inputs,
    secrets,
    required_secrets: [
      ...new Set([
        ...checkRequiredSecrets(request.requiredSecrets),
        ...checkRequiredSecrets(given?.requiredSecrets, 'secrets of the Python tools'),
      ]),
    ],
    collect,
    limits: lesser,
    ...(tools === undefined ? {} : { tools: [...tools.signatures] }),
    ...(sources.length === 0 ? {} : { tool_sources: [...sources] }),
    ...around(request),
  })
  if (execute.length > MAX_EXECUTE_BYTES) {
    throw invalid('request', `${execute.length} bytes; at most ${MAX_EXECUTE_BYTES}, pass data as files`)
  }
  return {
    sandbox,
    executionId,
    mode,
    timeoutSec: limits.timeoutSec,
    maxOutputBytes: limits.maxOutputBytes,
    asksLessMemory: lesser.memory_bytes !== undefined,
    secrets,
    files: checkFiles(request.files),
    collects: collect.length > 0,
    tools,
    checks: false,
    execute,
    signal,
  }
}

/** A request to check a script in one checked-out sandbox. */
export interface SandboxCheckRequest extends CheckRequest {
  readonly sandbox: Sandbox
}

/**
 * The same for a check.
 * @throws SandglassError `invalid_request`, naming the field.
 */
export function prepareCheck(request: SandboxCheckRequest): PreparedRun {
  const { sandbox, signal, mode = ExecutionMode.INTERACTIVE, policy, tools = [] } = request
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid('signal', 'it is no AbortSignal')
  if (!CHECKED_POLICIES.includes(policy)) throw invalid('policy', `${shown(policy)} is no policy; standard or strict`)
  const executionId = checkExecutionId(request.executionId)
  const execute = encodeFrame({
    type: 'check',
    execution_id: executionId,
    script: checkScript(request.script),
    mode,
    policy,
    timeout_sec: CHECK_TIMEOUT_SEC,
    names: [...(request.names ?? [])],
    allow_modules: [...(request.allowModules ?? [])],
    tools: [...tools],
    ...around(request),
  })
  if (execute.length > MAX_EXECUTE_BYTES)
    throw invalid('script', `${execute.length} bytes; at most ${MAX_EXECUTE_BYTES}`)
  return {
    sandbox,
    executionId,
    mode: ExecutionMode.INTERACTIVE,
    timeoutSec: CHECK_TIMEOUT_SEC,
    maxOutputBytes: MAX_CHECK_BYTES,
    asksLessMemory: false,
    secrets: {},
    files: [],
    collects: false,
    tools: undefined,
    checks: true,
    execute,
    signal,
  }
}

/** A global of scripts that have tools. */
const DESCRIBE_TOOL = 'describe_tool'
const CHECKED_POLICIES: readonly unknown[] = ['standard', 'strict']
/** A checker that needs longer has met a script that is made to be slow. */
const CHECK_TIMEOUT_SEC = 10
const MAX_CHECK_BYTES = 4 * 1024 * 1024

/** One byte order mark is the encoding's, not the script's. */
function checkScript(given: unknown): string {
  if (typeof given !== 'string') throw invalid('script', `${shown(given)} is no string`)
  return given.startsWith('\uFEFF') ? given.slice(1) : given
}

/** What is run before and behind the script, where there is something. */
function around(given: { readonly preamble?: unknown; readonly postamble?: unknown }): {
  preamble?: string
  postamble?: string
} {
  const { preamble = '', postamble = '' } = given
  if (typeof preamble !== 'string') throw invalid('preamble', `${shown(preamble)} is no string`)
  if (typeof postamble !== 'string') throw invalid('postamble', `${shown(postamble)} is no string`)
  return { ...(preamble === '' ? {} : { preamble }), ...(postamble === '' ? {} : { postamble }) }
}

function checkTools(given: unknown): RunTools | undefined {
  if (given === undefined) return undefined
  if (typeof given !== 'object' || given === null || !('open' in given) || !('signatures' in given)) {
    throw invalid('tools', 'they are no tools of a run; make them with runTools()')
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
      `the source of the Python tool ${shown(name)} has ${bytes} bytes; at most ${CAPS.toolSourceBytes} are allowed`,
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
      throw invalid('inputs', `${shown(both.name)} is the name of ${kind}; give the input another`)
  }
  const helper = kinds.some(([, named]) => named.length > 0) && Object.hasOwn(inputs, DESCRIBE_TOOL)
  if (helper) throw invalid('inputs', `${shown(DESCRIBE_TOOL)} is a function of every script that has tools`)
}

/** An id is opaque text: it is echoed and compared, never used as a key, a path or a name. */
function checkExecutionId(given: unknown): string {
  if (given === undefined || given === null) return randomUUID()
  if (typeof given !== 'string') throw invalid('executionId', `${shown(given)} is no string`)
  if (given.trim() === '') throw invalid('executionId', 'it is empty or blank')
  if (given.length > MAX_ID_LENGTH) throw invalid('executionId', `it has more than ${MAX_ID_LENGTH} characters`)
  if (/\p{Cc}/u.test(given)) throw invalid('executionId', 'it holds a control character')
  if (!given.isWellFormed()) throw invalid('executionId', 'it holds half of a surrogate pair')
  return given
}
