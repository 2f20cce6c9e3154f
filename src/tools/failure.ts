import type { ToolFailure } from '../protocol/index.ts'
import { truncate } from '../support/index.ts'
import type { PreparedTool } from './prepared-tool.ts'
import { ToolCallError } from './tool-error.ts'

const MAX_MESSAGE = 4096
const MAX_CODE = 64
/** Maximum characters of an error text that are processed, because a tool server chooses its length. */
const MAX_READ = 64 * 1024

/**
 * The failure of a call for the script: the message of the error, never its stack, without the secrets of the run and of the
 * tool. Never throws.
 */
export function failureOf(tool: PreparedTool, thrown: unknown, redact: RedactText): ToolFailure {
  const { code, message } = readFailure(tool.name, thrown)
  const clean = (given: string): string => {
    const text = given.slice(0, MAX_READ)
    // The cut may split a secret.
    const isCut = text.length < given.length
    return redact(tool.redactOwn(text, isCut), isCut)
  }
  return {
    code: clean(code).slice(0, MAX_CODE),
    message: truncate(clean(message), MAX_MESSAGE),
  }
}

/** Removes secrets from a text. @param isCut true if the text may end within one. */
export type RedactText = (text: string, isCut?: boolean) => string

function readFailure(name: string, thrown: unknown): ToolFailure {
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
  return typeof thrown === 'object' ? 'an object that is not an Error' : `a ${typeof thrown}`
}
