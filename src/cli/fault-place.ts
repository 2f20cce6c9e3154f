import { spawnSync } from 'node:child_process'
import { dirname, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { formatPath } from '../support/index.ts'

/** The source of this program, which is never the place of a user's mistake. */
const OWN = dirname(import.meta.dirname) + sep
const PACKAGES = `${sep}node_modules${sep}`
const CHECK_MS = 5000
/** `file:///home/me/tools.ts:3` or `/home/me/tools.ts:3`, alone on a line or in a line of a stack trace. */
const PLACE = /(?:^|\(| at (?:async )?)((?:file:\/\/)?\/[^\n()]+?):(\d+)(?::\d+)?\)?$/gm

/**
 * The place of a mistake in a module that could not be loaded, as a prefix of its message: `line 3: `, or `other.ts, line 3: `
 * for a module that it imports; empty if the place is unknown.
 * @param path the absolute path of the module.
 */
export function faultPlace(error: unknown, path: string): string {
  const found = error instanceof Error ? (placeIn(error.stack ?? '') ?? syntaxFault(error, path)) : undefined
  if (found === undefined) return ''
  return found.path === path ? `line ${found.line}: ` : `${formatPath(found.path)}, line ${found.line}: `
}

interface Place {
  readonly path: string
  readonly line: string
}

function placeIn(text: string): Place | undefined {
  for (const [, where = '', line = ''] of text.matchAll(PLACE)) {
    const path = where.startsWith('file:') ? fileURLToPath(where) : where
    if (!path.startsWith(OWN) && !path.includes(PACKAGES)) return { path, line }
  }
  return undefined
}

/** Node reports the line of a syntax error only when it checks the file as a program (`--check`). */
function syntaxFault(error: Error, path: string): Place | undefined {
  if (!(error instanceof SyntaxError)) return undefined
  const { stderr } = spawnSync(process.execPath, ['--check', path], { encoding: 'utf8', timeout: CHECK_MS })
  return placeIn(stderr.split('\n', 1)[0] ?? '')
}
