import { messageOf, SandglassError } from '../errors/index.ts'
import { checkDecision, type Decision } from '../review/index.ts'
import type { CodeProposal } from './code-proposal.ts'

/** Creates the error for an answer after another one. */
export function decidedBefore({ decision, at }: { readonly decision: Decision; readonly at: string }): SandglassError {
  const who = decision.by === null || decision.by === undefined ? '' : ` by ${decision.by}`
  return new SandglassError(
    'proposal_decided',
    `this proposal was decided before: ${decision.decision}${who} at ${at}. Your answer has no effect`,
  )
}

/** Reads the argument of `Command({ resume })`. */
export function readAnswer(given: unknown, { id }: CodeProposal): Decision | { readonly problem: string } {
  try {
    if (typeof given !== 'object' || given === null || !('proposal' in given))
      return { problem: 'the last answer does not say which proposal it is for: give its id as `proposal`' }
    const { proposal, ...decision } = given
    if (proposal !== id) return { problem: 'the last answer was for another proposal, and has no effect' }
    return checkDecision(decision)
  } catch (error) {
    return { problem: messageOf(error) }
  }
}
