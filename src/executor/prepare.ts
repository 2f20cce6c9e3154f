import { randomUUID } from 'node:crypto'
import { encodeFrame } from '../protocol/index.ts'
import type { Sandbox } from '../sandbox/index.ts'
import { checkInputs } from './inputs.ts'
import { checkCollect, checkFiles, type StagedFile } from './input-files.ts'
import { invalid, shown } from './invalid.ts'
import { lesserLimits, type RunLimits } from './limits.ts'
import type { ExecutionMode, RunRequest } from './result.ts'
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
  const execute = encodeFrame({
    type: 'execute',
    execution_id: executionId,
    script: checkScript(request.script),
    mode,
    timeout_sec: limits.timeoutSec,
    max_output_bytes: limits.maxOutputBytes,
    inputs: checkInputs(request.inputs),
    secrets,
    required_secrets: checkRequiredSecrets(request.requiredSecrets),
    collect,
    limits: lesser,
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
    execute,
    signal,
  }
}

function checkScript(given: unknown): string {
  if (typeof given !== 'string') throw invalid('script', `${shown(given)} is no string`)
  return given
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
