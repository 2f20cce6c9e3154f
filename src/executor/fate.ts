import type { Ending } from '../sandbox/index.ts'
import type { Evidence } from './evidence.ts'
import { outputLimitMessage } from './gathered.ts'
import type { ErrorKind, ExecutionStatus } from './result.ts'

/** What an ending alone makes of a run. */
export interface Fate {
  readonly status: ExecutionStatus
  readonly errorKind: ErrorKind
  readonly message: string
  /** Code of the warning, when something else decides the run. */
  readonly code: string
}

/** The message of the mission's document for the host's backstop (EX-08). */
const NO_ANSWER = 'Timed out waiting for container response'
/** The same for a channel that closed (EX-09). */
const CLOSED = 'Container stdout closed unexpectedly'
const CANCELLED: Fate = {
  status: 'cancelled',
  errorKind: 'cancelled',
  code: 'cancelled',
  message: 'the run was cancelled',
}

/** The fate of a run that came to an end; undefined when the script simply ended. */
export function fateOf(evidence: Evidence, ending: Ending): Fate | undefined {
  const { parting, aborted } = evidence
  switch (parting.kind) {
    case 'done':
      return fateOfScript(ending, evidence)
    case 'closed':
      return aborted ? CANCELLED : fateOfSandbox(ending, evidence)
    case 'deadline':
      return aborted ? CANCELLED : timedOut(NO_ANSWER)
    case 'cancelled':
      return CANCELLED
    case 'output-limit':
      return tooMuchOutput(parting.message)
    case 'violation':
      return lost(parting.message, 'channel_violation')
  }
}

function fateOfScript(
  { cause, exitCode, signal }: Ending,
  { timeoutSec, maxOutputBytes, memoryBytes }: Evidence,
): Fate | undefined {
  switch (cause) {
    case 'timeout':
      return timedOut(`Script timed out after ${timeoutSec}s`)
    case 'output-limit':
      return tooMuchOutput(outputLimitMessage(maxOutputBytes))
    case 'memory-limit':
      return outOfMemory(`the script's process was killed: ${memoryMessage(memoryBytes)}`)
    case 'cancelled':
      return CANCELLED
    case 'not-started':
      return lost('the harness did not start the script and gave no reason', 'not_started')
    case 'signal':
      return crashed(`the script's process was killed by ${signal ?? 'a signal'}`)
    case 'exit':
      if (exitCode === null || exitCode === 0) return undefined
      return crashed(`the script's process exited with code ${exitCode} without an error`)
    default:
      return undefined
  }
}

function fateOfSandbox({ cause, exitCode, signal, message }: Ending, { memoryBytes }: Evidence): Fate {
  if (cause === 'memory-limit') return outOfMemory(`${CLOSED}: ${memoryMessage(memoryBytes)}`)
  const how = signal !== null ? `: killed by ${signal}` : exitCode !== null ? `: exit code ${exitCode}` : ''
  return lost(`${CLOSED}${how}${message === undefined ? '' : `; it said: ${message}`}`, 'channel_closed')
}

function memoryMessage(memoryBytes: number): string {
  return `out of memory, the limit is ${memoryBytes} bytes`
}

function timedOut(message: string): Fate {
  return { status: 'timed-out', errorKind: 'timeout', code: 'timeout', message }
}

function tooMuchOutput(message: string): Fate {
  return { status: 'output-limit', errorKind: 'output_limit', code: 'output_limit', message }
}

function outOfMemory(message: string): Fate {
  return { status: 'memory-limit', errorKind: 'oom', code: 'memory_limit', message }
}

function crashed(message: string): Fate {
  return { status: 'crashed', errorKind: 'crash', code: 'crash', message }
}

function lost(message: string, code: string): Fate {
  return { status: 'sandbox-lost', errorKind: 'infrastructure', code, message }
}
