import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Groups of rows by their names. */
type Cases = Record<string, Record<string, unknown>[]>

/** The acceptance cases of workspaces under one name, such as `normalize_globs`. */
export function workspaceCases(subject: string): Cases {
  const found = allWorkspaceCases()[subject]
  if (found === undefined) throw new Error(`no cases ${subject}`)
  return found
}

/** All of them, by their names. */
export function allWorkspaceCases(): Record<string, Cases> {
  const text = readFileSync(join(import.meta.dirname, '../data/workspace-cases.json'), 'utf8')
  const { source: _source, ...all } = JSON.parse(text) as Record<string, Cases> & { readonly source: string }
  return all
}
