import { approvalTests } from '../../sandbox/tools/approvals.ts'
import { onDocker } from '../../sandbox/tools/on-engine.ts'

await onDocker(approvalTests)
