export {
  type BuiltImage,
  buildImage,
  type DockerEngine,
  dockerEngine,
  type DockerEngineOptions,
  type DockerSandbox,
  type DockerTls,
  type HostResource,
  type ImageBuildOptions,
  ManagedContainer,
} from './engines/docker/index.ts'
export { type LocalEngineOptions, localEngine } from './engines/local/index.ts'
export { ERROR_CODES, type ErrorCode, SandglassError } from './errors/index.ts'
export {
  type CollectedFile,
  type ErrorKind,
  ExecutionMode,
  type ExecutionResult,
  type ExecutionStatus,
  type ExecutorDiagnostic,
  type InputFile,
  type RunEvent,
  type RunRequest,
  type RunWarning,
  type SandboxRunRequest,
  ScriptExecutor,
  type ScriptExecutorOptions,
  type ServedBy,
} from './executor/index.ts'
export {
  type CheckoutOptions,
  type Lease,
  type PoolCloseOptions,
  type PoolOptions,
  type PoolStats,
  SandboxPool,
} from './pool/index.ts'
export { PROTOCOL_VERSION, type ReadyFrame } from './protocol/index.ts'
export type {
  Channel,
  CreateOptions,
  EnforcedLimit,
  Ending,
  EndingCause,
  IsolationLevel,
  ReportReason,
  Requirement,
  ResourceLimits,
  Sandbox,
  SandboxCapabilities,
  SandboxEngine,
  SandboxInfo,
  SandboxLimits,
  SandboxReport,
  SandboxSpec,
} from './sandbox/index.ts'
export { DEFAULT_LIMITS } from './sandbox/index.ts'
export {
  createSandglass,
  type RunOptions,
  type Sandglass,
  type SandglassOptions,
  type StandardSchema,
} from './sandglass.ts'
