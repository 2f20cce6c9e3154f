/** The entry `sandglass/workspaces`: workspaces, programs, files and blocks of code under the names of the Go package codeexecutor. */
export {
  type ArtifactRef,
  type ArtifactService,
  artifactServiceFromContext,
  type ArtifactSession,
  createArtifactService,
  loadArtifactHelper,
  parseArtifactRef,
  saveArtifactHelper,
  withArtifactService,
  withArtifactSession,
} from '../artifacts/index.ts'
export { type BlockSpec, buildBlockSpec, type CodeBlock, type CodeBlockDelimiter, extractCodeBlock } from './blocks.ts'
export { type CodeExecutorOptions, newCodeExecutor } from './code-executor.ts'
export type { CodeExecutionInput, CodeExecutionResult, CodeExecutor } from './code-executor-contract.ts'
export * from './constants.ts'
export {
  type CallOptions,
  type Capabilities,
  type Engine,
  type EngineProvider,
  type InteractiveProgramRunner,
  newEngine,
  type ProgramRunner,
  type StageOptions,
  type Workspace,
  type WorkspaceFS,
  type WorkspaceManager,
  type WorkspacePolicy,
} from './contract.ts'
export type { File, FileRef, InputSpec, OutputManifest, PutFile } from './files-contract.ts'
export { normalizeGlobs } from './globs.ts'
export {
  ensureLayout,
  type InputRecord,
  loadMetadata,
  newMetadata,
  type OutputRecord,
  saveMetadata,
  type SkillMeta,
  updateMetadata,
  type WorkspaceMetadata,
} from './metadata.ts'
export { type OutputSpec, outputSpecFromJson } from './output-spec.ts'
export type {
  InteractiveProgramSpec,
  ProgramLog,
  ProgramPoll,
  ProgramResultProvider,
  ProgramSession,
  ProgramState,
  ProgramStateProvider,
  ResourceLimits,
  RunProgramSpec,
  RunResult,
} from './programs-contract.ts'
export { type InputRef, parseInputRef } from './refs.ts'
export { WorkspaceRegistry, type WorkspaceRegistryOptions } from './registry.ts'
export { codeExecutionResultText } from './result-text.ts'
export {
  newEnvInjectingCodeExecutor,
  newEnvInjectingEngine,
  type RebindableCodeExecutor,
  type RunEnvProvider,
} from './run-env.ts'
export { newSandglassEngine, type SandglassEngine, type SandglassEngineOptions } from './sandglass-engine.ts'
export type { WorkspaceSource } from './manager.ts'
export type { SkillOptions } from './stage-skill.ts'
export { listSkills, readSkill, type Skill } from '../skills/index.ts'
export { isTextMime } from './text-mime.ts'
export { dirDigest } from '../workspace/index.ts'
