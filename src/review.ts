/** The entry `sandglass/review`: the types of reviews of scripts and of approvals of calls. */
export type {
  ApprovalOptions,
  ApproveOptions,
  Decision,
  Findings,
  PendingCall,
  Proposal,
  Reviewer,
} from './review/index.ts'
export type { ToolApproval } from './tools/index.ts'
