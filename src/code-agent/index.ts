/** The entry `sandglass/code-agent`: the contract of a code agent's replies, and the executors of what they ask for. */
export type { CodeToolExecutor, ToolBridge } from './code-tool-executor.ts'
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
