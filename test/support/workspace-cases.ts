import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The acceptance cases of workspaces under one name, such as `normalize_globs`. */
export function workspaceCases(subject: string): Record<string, Record<string, unknown>[]> {
  const text = readFileSync(join(import.meta.dirname, '../data/workspace-cases.json'), 'utf8')
  const all = JSON.parse(text) as Record<string, Record<string, Record<string, unknown>[]>>
  const found = all[subject]
  if (found === undefined) throw new Error(`no cases ${subject}`)
  return found
}
