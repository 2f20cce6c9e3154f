export { type AsToolOptions, checkAsToolOptions } from './as-tool.ts'
export { cellOptionsOf, runOptionsOf } from './cell-of-run.ts'
export { checkCheckOptions, type CheckOptions } from './check.ts'
export { checkRunOptions, REQUEST_OPTIONS, type RunOptions, type Workspace, type WorkspaceRunOptions } from './run.ts'
export { checkOptions, type SandglassOptions } from './sandglass.ts'
export {
  type CellEvent,
  type CellOptions,
  type CellResult,
  checkCellOptions,
  checkSessionOptions,
  partsOfSessionOptions,
  type RestoredState,
  type Session,
  type SessionCheckpoint,
  type SessionOptions,
  type WorkspaceSessionOptions,
} from './session.ts'
export { checkBranchCount, checkCheckpointName, checkCursor, checkpointIdOf } from './session-calls.ts'
export { checkSolveOptions, type SolveOptions } from './solve.ts'
export { checkWorkspaceOptions, type WorkspaceOptions } from './workspace.ts'
