export type {
  Channel,
  CreateOptions,
  EnforcedLimit,
  Ending,
  EndingCause,
  IsolationLevel,
  NetworkAccess,
  ReportReason,
  Sandbox,
  SandboxCapabilities,
  SandboxEngine,
  SandboxInfo,
  SandboxReport,
  SandboxSpec,
} from './contract.ts'
export {
  DEFAULT_LIMITS,
  gvisorMemoryBytes,
  type ResourceLimits,
  resolveLimits,
  type SandboxLimits,
  sandboxLimits,
  scratchSizes,
} from './limits.ts'
export { assertEnforced } from './asked-limits.ts'
export { claim, revokeClaim } from './claims.ts'
export { cpuTimeOf, noteCpuTime, sumOfTimes } from './cpu-time.ts'
export { ChunkQueue } from './chunk-queue.ts'
export { CpuQuota } from './cpu-quota.ts'
export { failedChecks, findOpenDescriptors } from './checks.ts'
export type { EngineModule, ReportLine, Resource } from './engine-module.ts'
export {
  HARNESS_DIR,
  harnessConfig,
  type HarnessOptions,
  harnessSources,
  INSIDE,
  type PackedHarness,
  packHarness,
  PYTHON_FLAGS,
} from './harness.ts'
export { assertPackagesFit, installedPackages } from './installed-packages.ts'
export { ping } from './ping.ts'
export { factsOfWorkspaces, harnessCapabilities, type Probe, reportOfProbe } from './probe.ts'
export { awaitReady } from './ready.ts'
export { assertRequirements, assertShown, REQUIREMENTS, type Requirement } from './requirements.ts'
export { type Attached, SEAL_KEY_BYTES, unseal } from './seal.ts'
export { unlessAborted } from './unless-aborted.ts'
