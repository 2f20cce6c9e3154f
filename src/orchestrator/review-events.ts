import type { JournalBody, Place } from '../journal/index.ts'
import type { Decision, Proposal } from '../review/index.ts'
import type { Redactor } from '../redaction/index.ts'
import { roundMs } from './active-task.ts'

/** Maximum characters of a plan in the journal. */
const MAX_PLAN = 2000

/** A proposal as the journal records it. */
export function makeProposalEvent(
  place: Place,
  proposal: Proposal,
  redactor: Redactor,
): Extract<JournalBody, { type: 'script_proposed' }> {
  const { id, plan, script, sha256, dependencies, tools, problem } = proposal
  const { engine, level, python, limitsEnforced, network } = proposal.sandbox
  return {
    type: 'script_proposed',
    ...place,
    proposal_id: id,
    // The cut may split a secret: `head` removes the partial one.
    plan: redactor.head(plan.slice(0, MAX_PLAN), MAX_PLAN),
    script,
    sha256: redactor.text(script) === script ? sha256 : null,
    dependencies,
    tools,
    sandbox: { engine, level, python, limits_enforced: limitsEnforced, network },
    problem,
  }
}

/** A decision as the journal records it. */
export function makeDecisionEvent(
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
