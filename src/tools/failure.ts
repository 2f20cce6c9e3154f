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
  const clean = (text: string): string => redact(withoutOwnSecrets(tool, text))
  const shown = clean(message)
  return {
    code: clean(code).slice(0, MAX_CODE),
    message: shown.length > MAX_MESSAGE ? `${shown.slice(0, MAX_MESSAGE)}…` : shown,
  }
}

function wordsOf(name: string, thrown: unknown): ToolFailure {
  try {
    if (thrown instanceof ToolCallError) return { code: String(thrown.code), message: String(thrown.message) }
    if (thrown instanceof Error) return { code: 'tool_failed', message: String(thrown.message) || String(thrown.name) }
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
  return tool.secrets
    .map((name) => ({ name, value: process.env[name] ?? '' }))
    .filter(({ value }) => value.length >= MIN_SECRET)
    .toSorted((a, b) => b.value.length - a.value.length) // one may be the beginning of another
    .reduce((rest, { name, value }) => rest.replaceAll(value, () => `[redacted:${name}]`), text)
}
