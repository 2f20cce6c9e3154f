export { within } from './bounded.ts'
export { type CheckedScript, checkScript } from './check.ts'
export type { CheckRequest, Policy } from './check-request.ts'
export type { ExecutorDiagnostic } from './diagnostics.ts'
export { ScriptExecutor, type ScriptExecutorOptions } from './executor.ts'
export type { CellGroup, CellTurn, SandboxCheckRequest, SandboxRunRequest } from './prepare.ts'
export { checkCollectLimits } from './collect-limits.ts'
export { readHostFile } from './host-file.ts'
export { checkInputs } from './inputs.ts'
export { isAt } from './real-file.ts'
export { checkCollect, checkFileList, checkFiles, findHostFiles, openFile, type StagedFile } from './input-files.ts'
export {
  type CellEnd,
  type CheckpointState,
  type CollectedFile,
  type CollectLimits,
  type Display,
  ExecutionMode,
  type ExecutionResult,
  type FileInput,
  type FilesInput,
  type RunEvent,
  type RunRequest,
  type RunEnvironment,
  type RunWarning,
  type ServedBy,
  type SessionVariable,
  type ToolCall,
  type Violation,
} from './result.ts'
export { pathProblem } from './paths.ts'
export type { SharedChannel } from './sender.ts'
export { boundArgs, MAX_LISTED_CALLS, wasCalled } from './tool-log.ts'
export { checkHidden, checkSecrets } from './secret-names.ts'
export { isStdinStream, readStdin } from './stdin.ts'
export { endpointAt, type ToolEndpoint, unreachable } from './tool-endpoint.ts'
export type { RunTools, ToolAnswer, ToolOutcome, ToolPort, ToolRun } from './tool-port.ts'
