/** The entry `sandglass/code-agent`: an agent on LangGraph, the instructions for its model, a parser of its replies, executors of its scripts. */
export {
  type CodeAgent,
  type CodeAgentOptions,
  type CodeAgentState,
  createCodeAgent,
  type ThreadOptions,
} from './agent.ts'
export type { CompiledGraph } from './agent-graph.ts'
export type { Checkpointer } from './checkpointer.ts'
export type { CodeAgentOutcome, CodeAgentRecord, CodeAnswer, CodeProposal } from './code-proposal.ts'
export type { CodeToolExecutor, ExecuteOptions, Inspected, ToolBridge } from './code-tool-executor.ts'
export type {
  DockerPythonExecutorOptions,
  LocalPythonExecutorOptions,
  PythonExecutorOptions,
} from './executor-options.ts'
export { DockerPythonExecutor, LocalPythonExecutor } from './executors.ts'
export { codeAgentInstructions, type InstructionsFor } from './instructions.ts'
export {
  type AgentReply,
  getExecutionCodeContent,
  getLibrariesContent,
  getTextAfterLastExecutionCode,
  parseReply,
} from './reply.ts'
export { type ContentPart, splitToolResponseMarkers, ToolResponses } from './tool-responses.ts'
