import { SandglassError } from '../errors/index.ts'
import { UsageError } from './failure.ts'

const KEYS: readonly [string, string][] = [
  ['limits.executionTimeoutSec', 'timeout_s'],
  ['memoryBytes', 'memory_bytes'],
  ['diskBytes', 'disk_bytes'],
  ['maxOutputBytes', 'max_output_bytes'],
  ['requiredSecrets', 'required_secrets'],
  ['executionId', 'execution_id'],
]
const FLAGS: readonly [string, string][] = [
  ['limits.executionTimeoutSec', '--timeout'],
  ['limits.memoryBytes', '--memory'],
  ['limits.maxOutputBytes', '--max-output'],
  ['limits.cpus', '--cpus'],
  ['limits.pids', '--pids'],
  ['requiredSecrets', '--secret'],
]

/** The library's names in messages about a request, as the caller wrote them: keys of a line, or flags. */
export function reworded(error: unknown, as: 'keys' | 'flags'): unknown {
  if (!(error instanceof SandglassError) || error instanceof UsageError) return error
  const names = as === 'keys' ? KEYS : FLAGS
  const message = names.reduce((text, [from, to]) => text.replaceAll(from, to), error.message)
  return message === error.message ? error : new SandglassError(error.code, message, { cause: error })
}
