export type { ExecutorDiagnostic } from './diagnostics.ts'
export { ScriptExecutor, type ScriptExecutorOptions } from './executor.ts'
export type { SandboxRunRequest } from './prepare.ts'
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
} from './result.ts'
