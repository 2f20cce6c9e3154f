import { OUTCOME_OF_CAUSE, type EndingOutcomeName } from '../outcomes/index.ts'
import type { Ending, EndingCause } from '../sandbox/index.ts'
import type { ConversationEnd } from './conversation-end.ts'
import { outputLimitMessage } from './run-transcript.ts'

/** The outcome of a run by its ending alone. */
export interface Outcome {
  readonly name: EndingOutcomeName
  readonly message: string
}

/** The facts that decide an outcome together with the ending. */
export interface OutcomeFacts {
  readonly end: ConversationEnd
  readonly timeoutSec: number
  readonly maxOutputBytes: number
  readonly memoryBytes: number
  /** True if the caller's signal has fired. */
  readonly aborted: boolean
}

/** The message of the host's backstop. It and the next one say "container" on every engine, because callers match on these words. */
const NO_ANSWER = 'Timed out waiting for container response'
/** The message for a channel that closed. */
const CLOSED = 'Container stdout closed unexpectedly'
const CANCELLED: Outcome = { name: 'cancelled', message: 'the run was cancelled' }

/** The outcome of an ending; undefined if the script ended normally. */
export function outcomeOf(ending: Ending, facts: OutcomeFacts): Outcome | undefined {
  const { end, aborted } = facts
  const { cause, exitCode } = ending
  const endedNormally = end.kind === 'done' && cause === 'exit' && (exitCode === null || exitCode === 0)
  if (endedNormally) return undefined
  if (aborted && (end.kind === 'closed' || end.kind === 'deadline')) return CANCELLED
  return { name: OUTCOME_OF_CAUSE[cause], message: messageOf(ending, facts) }
}

function messageOf(ending: Ending, facts: OutcomeFacts): string {
  const { end } = facts
  switch (end.kind) {
    case 'done':
      return SCRIPT_MESSAGES[ending.cause](ending, facts)
    case 'closed':
      return closedMessage(ending, facts)
    case 'deadline':
      return NO_ANSWER
    case 'cancelled':
      return CANCELLED.message
    case 'output-limit':
    case 'protocol-error':
      return end.message
  }
}

/** The outcome of each cause that the harness reports. */
const SCRIPT_MESSAGES: Readonly<Record<EndingCause, (ending: Ending, facts: OutcomeFacts) => string>> = {
  exit: ({ exitCode }) => `the script's process exited with code ${exitCode} without an error`,
  signal: ({ signal }) => `the script's process was killed by ${signal ?? 'a signal'}`,
  timeout: (_, { timeoutSec }) => `Script timed out after ${timeoutSec}s`,
  'output-limit': (_, { maxOutputBytes }) => outputLimitMessage(maxOutputBytes),
  'memory-limit': (_, facts) => `the script's process was killed: ${memoryMessage(facts)}`,
  cancelled: () => CANCELLED.message,
  'not-started': () => 'the harness did not start the script and gave no reason',
  destroyed: () => 'the sandbox was destroyed',
  'channel-closed': () => CLOSED,
}

function closedMessage({ cause, exitCode, signal, message }: Ending, facts: OutcomeFacts): string {
  if (cause === 'cancelled') return message === undefined ? CANCELLED.message : `${CANCELLED.message}: ${message}`
  if (cause === 'memory-limit') return `${CLOSED}: ${memoryMessage(facts)}`
  const how = signal !== null ? `: killed by ${signal}` : exitCode !== null ? `: exit code ${exitCode}` : ''
  return `${CLOSED}${how}${message === undefined ? '' : `; it said: ${message}`}`
}

function memoryMessage({ memoryBytes }: OutcomeFacts): string {
  return `out of memory, the limit is ${memoryBytes} bytes`
}
