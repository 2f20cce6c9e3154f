export { type CheckedScript, checkScript } from './check.ts'
export type { CheckRequest, Policy } from './check-request.ts'
export type { ExecutorDiagnostic } from './diagnostics.ts'
export { ScriptExecutor, type ScriptExecutorOptions } from './executor.ts'
export type { SandboxCheckRequest, SandboxRunRequest } from './prepare.ts'
export { checkInputs } from './inputs.ts'
export { Redactor } from './redact.ts'
export {
  type CollectedFile,
  type ErrorKind,
  ExecutionMode,
  type ExecutionResult,
  type ExecutionStatus,
  type InputFile,
  type RunEvent,
  type RunRequest,
  type RunWarning,
  type ServedBy,
  type ToolCall,
  type Violation,
} from './result.ts'
export { checkSecrets } from './secret-names.ts'
export type { RunTools, ToolAnswer, ToolOutcome, ToolPort, ToolRun } from './tool-port.ts'
