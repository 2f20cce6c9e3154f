export type { AiSdkTool, KeyedTool, LangChainTool, NamedTool } from './accept.ts'
export type { PreparedTool } from './prepared-tool.ts'
export type { PythonClass } from './python-classes.ts'
export type {
  JsonSchemaObject,
  SchemaIssue,
  SchemaResult,
  StandardToolSchema,
  ToolSchema,
  ValueOf,
} from './standard-schema.ts'
export { defineTool, type Tool, type ToolContext, type ToolEffect, type ToolOptions } from './tool.ts'
export { TOOL_ERROR_CODES, ToolCallError, type ToolErrorCode } from './tool-error.ts'
export { type ToolResponse, toolResponse } from './tool-response.ts'
export { prepareTools, type ToolSet, type ToolsInput, type ToolSource } from './tool-set.ts'
