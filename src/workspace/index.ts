export type { ExecResult } from './exec.ts'
export type { Program } from './program.ts'
export type { FilesInput } from './put-files.ts'
export { ActivityWorkspace, type BorrowedSandbox, type WorkspaceActivities } from './workspace.ts'
