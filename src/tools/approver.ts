import type { PreparedTool } from './prepared-tool.ts'
import type { ToolEffect } from './tool.ts'
import type { ToolSet } from './tool-set.ts'

/** A call that waits for approval. */
export interface CallToApprove {
  readonly executionId: string
  /** The name of its Python function. */
  readonly tool: string
  readonly effect: ToolEffect
  /** The arguments that the script gave, without the secrets of the run. */
  readonly args: unknown
  /** The line of the script that made the call, if it is known. */
  readonly line: number | null
  /** Fires at the end of the run. */
  readonly signal: AbortSignal
  /** Rejects with the reason if the tool does not accept other arguments. */
  check(args: Readonly<Record<string, unknown>>): Promise<void>
  /** Called when the call begins to wait; `id` names it in the list of waiting calls. */
  onAsked(id: string): void
}

/** The answer about a call. */
export type CallDecision = (
  | { readonly approved: true; readonly args: Readonly<Record<string, unknown>> | null }
  | { readonly approved: false; readonly reason: string }
) & {
  /** Null if nobody answered, or nobody said who did. */
  readonly by: string | null
}

/** Asks about the calls of one run. */
export interface Approver {
  /** True if calls that may change something need approval unless their tool says otherwise. */
  readonly approvesWrites: boolean
  /** Waits for the answer. Rejects with the reason of the signal if that fires first. */
  ask(call: CallToApprove): Promise<CallDecision>
}

/** The meaning of `approve` of a tool in a run. */
export function approvalRuleOf(
  { approve, effect }: Pick<PreparedTool, 'approve' | 'effect'>,
  approver: Approver | undefined,
): NonNullable<PreparedTool['approve']> {
  return approve ?? (effect !== 'read' && approver?.approvesWrites === true)
}

/** True if calls of a run may wait for approval. */
export function mayWait(set: ToolSet, approver: Approver | undefined): boolean {
  return approver !== undefined && [...set.tools.values()].some((tool) => approvalRuleOf(tool, approver) !== false)
}
