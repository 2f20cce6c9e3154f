export {
  type ApprovalOptions,
  Approvals,
  type ApprovedRun,
  type ApproveOptions,
  checkApprovalOptions,
  MAX_REASON,
  type PendingCall,
} from './approvals.ts'
export {
  checkDecision,
  checkReviewer,
  MAX_DECIDER,
  MAX_DECISION_TEXT,
  type Decision,
  type Reviewer,
} from './decision.ts'
export { findingsOf, type Findings, makeProposal, type Proposal } from './proposal.ts'
export { reviewScript } from './review-script.ts'
