export type { CheckResult } from './checkers.ts'
export { dockerEngine, type DockerEngineOptions, type DockerTls, type HostResource } from './engines/docker/index.ts'
export { type LocalEngineOptions, localEngine } from './engines/local/index.ts'
export { type PyodideEngineOptions, pyodideEngine } from './engines/pyodide/index.ts'
export type { FailedDependency } from './dependencies.ts'
export type { PassedOver } from './engine-choice.ts'
export type { EnvironmentOptions, InstallProgress } from './environments/index.ts'
export { ERROR_CODES, type ErrorCode, SandglassError } from './errors/index.ts'
export {
  type CheckedScript,
  type CheckRequest,
  checkScript,
  type CollectedFile,
  ExecutionMode,
  type ExecutionResult,
  type ExecutorDiagnostic,
  type InputFile,
  type Policy,
  type RunEnvironment,
  type RunEvent,
  type RunRequest,
  type RunTools,
  type RunWarning,
  type SandboxCheckRequest,
  type SandboxRunRequest,
  ScriptExecutor,
  type ScriptExecutorOptions,
  type ServedBy,
  type ToolAnswer,
  type ToolCall,
  type ToolOutcome,
  type ToolPort,
  type ToolRun,
  type Violation,
} from './executor/index.ts'
export {
  type AttemptRecord,
  type GenerationRecord,
  type JournalEvent,
  type JournalStore,
  jsonlStore,
  memoryStore,
  recordOf,
  type RunRecord,
  type RunSummary,
  type SandboxRecord,
  sqliteStore,
  type StepRecord,
  type StoreOptions,
  type ToolCallRecord,
} from './journal/index.ts'
export {
  type AiSdkModel,
  callerOf,
  chatCompletions,
  type ChatCompletionsOptions,
  type LangChainModel,
  type LLMCallContext,
  type LLMCaller,
  type LLMCallResult,
  ModelError,
  type ModelPrice,
  type Pricing,
  type ModelInput,
  recordModel,
  replayModel,
  type ReplayModelOptions,
} from './llm/index.ts'
export type {
  AsToolOptions,
  CheckOptions,
  RunOptions,
  SandglassOptions,
  SolveOptions,
  Workspace,
  WorkspaceOptions,
} from './options.ts'
export {
  sameData,
  type SolveBudget,
  type SolveDefaults,
  type SolveEvent,
  type StreamOptions,
  type TaskOptions,
  type ToolExecutionResult,
  ToolOrchestrator,
  type ToolOrchestratorOptions,
} from './orchestrator/index.ts'
export type { ErrorKind, ExecutionStatus, TaskStatus, WarningCode } from './outcomes/index.ts'
export { type CheckoutOptions, type Lease, type PoolOptions, type PoolStats, SandboxPool } from './pool/index.ts'
export type {
  IsolationLevel,
  Requirement,
  ResourceLimits,
  Sandbox,
  SandboxEngine,
  SandboxReport,
  SandboxSpec,
} from './sandbox/index.ts'
export { DEFAULT_LIMITS } from './sandbox/index.ts'
export type { PreparedPackages, PrepareOptions } from './script-runner.ts'
export { createSandglass, type Sandglass } from './sandglass.ts'
export {
  type AssembledScript,
  type CollectedItem,
  DEFAULT_PROMPTS,
  type Failure,
  type Prompts,
  ScriptGenerator,
  type ScriptGeneratorOptions,
  type StepView,
} from './script/index.ts'
export { currentTrace, logTo, type StructuredLogger, type TraceContext, withTrace } from './telemetry/index.ts'
export {
  type AcceptedBy,
  type AiSdkTool,
  bridgedTools,
  connectMcp,
  definePythonTool,
  defineTool,
  type JsonSchemaObject,
  type LangChainTool,
  type McpAddress,
  type McpClient,
  type McpConnection,
  type McpProgram,
  type McpServer,
  mcpTools,
  type McpToolsOptions,
  type NamedTool,
  parametersSchema,
  type PreparedTool,
  prepareTools,
  type PythonClass,
  type PythonTool,
  type PythonToolOptions,
  type RanScript,
  type RegisterOptions,
  type RunPythonAnswer,
  type RunPythonOptions,
  type RunPythonTool,
  type SandboxTools,
  type StandardToolSchema,
  type Tool,
  TOOL_ERROR_CODES,
  ToolCallError,
  type ToolContext,
  type ToolEffect,
  type ToolErrorCode,
  type ToolLimits,
  type ToolOptions,
  ToolRegistry,
  type ToolResponse,
  toolResponse,
  type ToolSchema,
  type ToolSet,
  type ToolsInput,
  type ToolSource,
  type ValueOf,
} from './tools/index.ts'
export type { StandardSchema } from './typed-result.ts'
export type { ExecOptions, ExecResult, Program, StartOptions } from './workspace/index.ts'
