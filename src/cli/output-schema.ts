import { messageOf } from '../errors/index.ts'
import type { SolveOptions } from '../index.ts'
import { standardSchemaOf } from '../tools/index.ts'
import { formatPath, formatValue } from '../support/index.ts'
import { readText } from './bounded-read.ts'
import { UsageError } from './failure.ts'

const MAX_SCHEMA_BYTES = 1024 * 1024

/**
 * The value of `--output`: a file with JSON Schema, or the schema itself if it begins with `{`.
 * @throws UsageError.
 */
export async function outputSchema(given: string, signal: AbortSignal): Promise<NonNullable<SolveOptions['output']>> {
  const isInline = given.trimStart().startsWith('{')
  const what = isInline ? '--output' : `--output ${formatPath(given)}`
  const text = isInline ? given : await readText(given, what, MAX_SCHEMA_BYTES, signal)
  const schema = parse(text, what)
  try {
    return standardSchemaOf(schema)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new UsageError('invalid_request', `${what}: the schema ${error.message}`, { cause: error })
  }
}

function parse(text: string, what: string): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch (error) {
    throw new UsageError('invalid_request', `${what}: it is not JSON: ${messageOf(error)}`, { cause: error })
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new UsageError('invalid_request', `${what}: ${formatValue(value)} is not a JSON Schema, which is an object`)
}
