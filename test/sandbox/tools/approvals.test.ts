import { onLocal } from './on-engine.ts'
import { approvalTests } from './approvals.ts'

await onLocal(approvalTests)
