import type { JournalBody, Place } from '../journal/index.ts'
import type { Decision, Proposal } from '../review/index.ts'
import { roundMs } from './active-task.ts'

/** A proposal as the journal records it. */
export function proposalEvent(place: Place, proposal: Proposal): Extract<JournalBody, { type: 'script_proposed' }> {
  const { id, plan, script, sha256, dependencies, tools, problem } = proposal
  const { engine, level, python, limitsEnforced, network } = proposal.sandbox
  return {
    type: 'script_proposed',
    ...place,
    proposal_id: id,
    plan,
    script,
    sha256,
    dependencies,
    tools,
    sandbox: { engine, level, python, limits_enforced: limitsEnforced, network },
    problem,
  }
}

/** A decision as the journal records it. */
export function decisionEvent(
  place: Place,
  { id, script }: Proposal,
  decision: Decision,
  waitedMs: number,
): Extract<JournalBody, { type: 'proposal_decided' }> {
  const own = decision.decision === 'accept' ? (decision.script ?? null) : null
  return {
    type: 'proposal_decided',
    ...place,
    proposal_id: id,
    decision: decision.decision,
    by: decision.by ?? null,
    text: decision.decision === 'accept' ? null : decision.text,
    script: own === script ? null : own,
    waited_ms: roundMs(waitedMs),
  }
}
