import type { BaseMessage } from '@langchain/core/messages'
import type { CodeAgentOutcome, CodeAgentRecord, CodeProposal } from './code-proposal.ts'

/** A script of the model that has not been proposed. */
export interface Draft {
  readonly plan: string
  readonly script: string
  readonly libraries: readonly string[]
}

/** A script that may run. */
export interface AcceptedScript {
  readonly proposal: string | null
  readonly script: string
  readonly libraries: readonly string[]
  readonly author: 'model' | 'reviewer'
}

/** The state of the graph, which the checkpointer keeps. */
export interface AgentValues {
  readonly messages: BaseMessage[]
  /** Calls of the model on this thread. */
  readonly turn: number
  readonly draft: Draft | null
  readonly proposal: CodeProposal | null
  readonly accepted: AcceptedScript | null
  /** The last script that the model proposed. */
  readonly last: string | null
  readonly records: readonly CodeAgentRecord[]
  readonly outcome: CodeAgentOutcome | null
}
