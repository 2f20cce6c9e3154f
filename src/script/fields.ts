import type { CheckedTool } from '../protocol/index.ts'

const MOST = 500
/** What may stand in a sentence of a prompt. */
const PLAIN = /^[\p{L}\p{N}_$@.:/ -]{1,60}$/u

/** Names of what tools answer with, each once, from their schemas. */
export function fieldsOf(tools: readonly Pick<CheckedTool, 'result'>[]): readonly string[] {
  const found = new Set<string>()
  for (const { result } of tools) gather(result, found)
  return [...found]
}

function gather(schema: unknown, found: Set<string>): void {
  if (typeof schema !== 'object' || schema === null || found.size >= MOST) return
  for (const [key, value] of Object.entries<unknown>({ ...schema })) {
    if (key === 'properties' && typeof value === 'object' && value !== null) {
      for (const name of Object.keys(value)) if (PLAIN.test(name)) found.add(name)
    }
    gather(value, found)
  }
}
