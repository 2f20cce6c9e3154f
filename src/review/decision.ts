import { formatValue, refuseUnknown } from '../support/index.ts'
import type { Proposal } from './proposal.ts'

/** The answer to a proposal. */
export type Decision =
  | {
      readonly decision: 'accept'
      /** Runs in place of the proposed script if it passes the check. The record has both. */
      readonly script?: string | null | undefined
      readonly by?: string | null | undefined
    }
  | {
      /** The script does not run, and the model answers again; a code agent stops at `reject`. */
      readonly decision: 'respond' | 'edit' | 'reject'
      /** The message to the model: an answer, a change to make, or the reason. At most 20,000 characters. */
      readonly text: string
      /** The name of the person who decided, for the record. At most 200 characters. */
      readonly by?: string | null | undefined
    }

/**
 * Decides about a script before any part of it runs. `signal` is aborted when the answer is no longer needed. Concurrent calls of a tool
 * ask at the same time. An error that it throws ends the task as `infrastructure`, and rejects the call of a tool or a code agent.
 */
export type Reviewer = (proposal: Proposal, context: { readonly signal: AbortSignal }) => Decision | Promise<Decision>

/** Maximum characters of the message to the model. */
export const MAX_DECISION_TEXT = 20_000
/** Maximum characters of the name of the person who decided. */
export const MAX_DECIDER = 200
const NEGATIVE = ['respond', 'edit', 'reject'] as const

/** @throws TypeError if the option is not a function. */
export function checkReviewer(review: unknown): void {
  if (review === undefined || typeof review === 'function') return
  throw new TypeError(
    `review: ${formatValue(review)} is not a function; it takes a proposal and answers { decision: 'accept' }, or ` +
      "{ decision: 'reject', text }",
  )
}

/** Checks the answer of a reviewer. @throws TypeError that names the mistake. */
export function checkDecision(given: unknown): Decision {
  if (typeof given !== 'object' || given === null) throw wrong(`${formatValue(given)} is not a decision`)
  refuseUnknown('answer of the reviewer', given, ['decision', 'script', 'text', 'by'])
  const answer: Partial<Record<'decision' | 'script' | 'text' | 'by', unknown>> = given
  const { decision, script = null, text = null, by = null } = answer
  if (by !== null && (typeof by !== 'string' || by.length > MAX_DECIDER))
    throw wrong(`by: ${formatValue(by)} is not a text of at most ${MAX_DECIDER} characters`)
  if (decision === 'accept') {
    if (script !== null && (typeof script !== 'string' || script.trim() === ''))
      throw wrong(`script: ${formatValue(script)} is not Python; leave it out to accept the script as it is`)
    return { decision, script, by }
  }
  const negative = NEGATIVE.find((one) => one === decision)
  if (negative === undefined)
    throw wrong(`decision: ${formatValue(decision)} is not one of accept, ${NEGATIVE.join(', ')}`)
  if (script !== null) throw wrong(`script: the decision ${negative} must not have one; only accept may`)
  if (typeof text !== 'string' || text.trim() === '' || text.length > MAX_DECISION_TEXT)
    throw wrong(`text: ${negative} needs a message to the model, of at most ${MAX_DECISION_TEXT} characters`)
  return { decision: negative, text, by }
}

function wrong(problem: string): TypeError {
  return new TypeError(`answer of the reviewer: ${problem}`)
}
