import type { ToolFailure } from '../protocol/index.ts'
import type { PreparedTool } from './prepared-tool.ts'
import { ToolCallError } from './tool-error.ts'

const MAX_MESSAGE = 4096
const MAX_CODE = 64
/** Shorter values would blank out ordinary text. */
const MIN_SECRET = 4

/**
 * What a script is told of whatever a tool threw: its message, never a stack; without the secrets of the run and of the
 * tool. Never throws, whatever was thrown.
 */
export function failureOf(tool: PreparedTool, thrown: unknown, redact: (text: string) => string): ToolFailure {
  const { code, message } = wordsOf(tool.name, thrown)
  const clean = redact(withoutOwnSecrets(tool, message))
  return {
    code: code.slice(0, MAX_CODE),
    message: clean.length > MAX_MESSAGE ? `${clean.slice(0, MAX_MESSAGE)}…` : clean,
  }
}

function wordsOf(name: string, thrown: unknown): ToolFailure {
  try {
    if (thrown instanceof ToolCallError) return { code: String(thrown.code), message: String(thrown.message) }
    if (thrown instanceof Error) return { code: 'tool_failed', message: String(thrown.message) || thrown.name }
    if (typeof thrown === 'string') return { code: 'tool_failed', message: thrown }
    return { code: 'tool_failed', message: `${name} threw ${kindOf(thrown)}` }
  } catch {
    return { code: 'tool_failed', message: `${name} threw something that cannot be read` }
  }
}

function kindOf(thrown: unknown): string {
  if (thrown === null || thrown === undefined) return String(thrown)
  return typeof thrown === 'object' ? 'an object that is no Error' : `a ${typeof thrown}`
}

function withoutOwnSecrets(tool: PreparedTool, text: string): string {
  return tool.secrets.reduce((rest, name) => {
    const value = process.env[name]
    return value === undefined || value.length < MIN_SECRET ? rest : rest.replaceAll(value, `[redacted:${name}]`)
  }, text)
}
