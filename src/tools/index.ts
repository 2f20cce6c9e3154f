export type { AiSdkTool, LangChainTool, NamedTool } from './accept.ts'
export type { Approver, CallDecision, CallToApprove } from './approver.ts'
export { type BridgedTools, bridgedTools } from './bridge.ts'
export { mayHaveActed } from './call-effect.ts'
export { describeLoss, reasonOfLoss } from './cell-answer.ts'
export { checkToolLimits, type ToolLimits } from './call-limits.ts'
export { jsonSchemaOf } from './json-schema.ts'
export { joinProblems } from './schema-errors.ts'
export { type McpClient, mcpTools, type McpToolsOptions } from './mcp.ts'
export { connectMcp, type McpAddress, type McpConnection, type McpProgram, type McpServer } from './mcp-connection.ts'
export { parametersSchema } from './parameter-list.ts'
export type { PreparedTool } from './prepared-tool.ts'
export type { PythonClass } from './python-classes.ts'
export { definePythonTool, isPythonTool, type PythonTool, type PythonToolOptions } from './python-tool.ts'
export { type RegisterOptions, type SandboxTools, ToolRegistry } from './registry.ts'
export {
  type RanScript,
  type RunPythonAnswer,
  type RunPythonOptions,
  type RunPythonTool,
  runPythonTool,
} from './run-python.ts'
export type {
  AcceptedBy,
  JsonSchemaObject,
  SchemaIssue,
  StandardToolSchema,
  ToolSchema,
  ValueOf,
} from './standard-schema.ts'
export { defineTool, type Tool, type ToolContext, type ToolEffect, type ToolOptions } from './tool.ts'
export { TOOL_ERROR_CODES, ToolCallError, type ToolErrorCode } from './tool-error.ts'
export { standardSchemaOf } from './validator.ts'
export { selectTold } from './told-warnings.ts'
export { type ToolApproval, withToolApproval } from './tool-approval.ts'
export { type ToolResponse, toolResponse } from './tool-response.ts'
export { boundedValidator } from './validator.ts'
export { dependenciesOf, mapTools, prepareTools, type ToolSet, type ToolsInput, type ToolSource } from './tool-set.ts'
