import type { Decision, Proposal } from '../review/index.ts'

/** A script of a code agent that waits for a decision; no part of it has run. */
export interface CodeProposal extends Proposal {
  /** The packages that the model names next to the script, unchanged. They are not installed yet. */
  readonly libraries: readonly string[]
  /** True if the host ended while the script before this one ran: that script may have run, in whole or in part. */
  readonly afterUncertainRun: boolean
}

/** An answer to a proposal of a code agent: a decision, and the proposal that it is for. */
export type CodeAnswer = Decision & {
  /** The id of the proposal. An answer to another proposal has no effect. */
  readonly proposal: string
}

/** A decision or a run on a thread of a code agent. */
export type CodeAgentRecord =
  | {
      readonly type: 'decision'
      readonly proposal: string
      /** SHA-256 of the proposed script. */
      readonly sha256: string
      readonly decision: Decision['decision']
      readonly text: string | null
      readonly by: string | null
      /** ISO 8601. */
      readonly at: string
    }
  | {
      readonly type: 'run'
      /** Null with `review: 'never'`. */
      readonly proposal: string | null
      readonly script: string
      readonly libraries: readonly string[]
      /** The reviewer, if an accepting decision replaced the script. */
      readonly author: 'model' | 'reviewer'
      /** `may-have-run`: the host ended while it ran, so nobody knows how far it got. It is not run again. */
      readonly outcome: 'ran' | 'may-have-run'
      readonly at: string
    }

/** The end of a code agent's work on a message. */
export type CodeAgentOutcome = 'answered' | 'rejected' | 'turns-exhausted'
