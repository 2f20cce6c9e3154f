/** The entry `sandglass/code-agent`: instructions for a code agent's model, a parser of its replies, executors of its scripts. */
export type { CodeToolExecutor, ExecuteOptions, ToolBridge } from './code-tool-executor.ts'
export {
  DockerPythonExecutor,
  type DockerPythonExecutorOptions,
  LocalPythonExecutor,
  type LocalPythonExecutorOptions,
  type PythonExecutorOptions,
} from './executors.ts'
export { codeAgentInstructions, type InstructionsFor } from './instructions.ts'
export {
  type AgentReply,
  getExecutionCodeContent,
  getLibrariesContent,
  getTextAfterLastExecutionCode,
  parseReply,
} from './reply.ts'
export { type ContentPart, splitToolResponseMarkers, ToolResponses } from './tool-responses.ts'
