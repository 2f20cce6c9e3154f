/** The entry `sandglass/engine`: the contract of an engine, and the parts from which an author builds one. */
export type { DockerEngine, DockerSandbox } from './engines/docker/index.ts'
export { ManagedContainer } from './engines/docker/index.ts'
export { type ErrorCode, SandglassError } from './errors/index.ts'
export { PROTOCOL_VERSION, type ReadyFrame } from './protocol/index.ts'
export type {
  Channel,
  CreateOptions,
  EnforcedLimit,
  Ending,
  EndingCause,
  IsolationLevel,
  NetworkAccess,
  ReportReason,
  ResourceLimits,
  Sandbox,
  SandboxCapabilities,
  SandboxEngine,
  SandboxInfo,
  SandboxLimits,
  SandboxReport,
  SandboxSpec,
} from './sandbox/index.ts'
export {
  awaitReady,
  ChunkQueue,
  failedChecks,
  HARNESS_DIR,
  harnessConfig,
  type HarnessOptions,
  INSIDE,
  type PackedHarness,
  packHarness,
  type Probe,
  PYTHON_FLAGS,
  reportOfProbe,
  resolveLimits,
  sandboxLimits,
  scratchSizes,
} from './sandbox/index.ts'
