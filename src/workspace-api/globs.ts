import { posix } from 'node:path'
import { formatValue } from '../support/index.ts'
import { dirOut, dirSkills, dirWork, envOutputDir, envSkillsDir, envWorkDir, workspaceEnvDirKey } from './constants.ts'
import { invalid } from './invalid.ts'

/** The variables that a pattern may begin with, and the directories that they name. */
const DIRECTORIES: ReadonlyMap<string, string> = new Map([
  [workspaceEnvDirKey, ''],
  [envSkillsDir, dirSkills],
  [envWorkDir, dirWork],
  [envOutputDir, dirOut],
])

const PREFIX = /^\$(?:\{(\w+)\}|(\w+))(?:[/\\]|$)/

/**
 * Rewrites globs that begin with `$OUTPUT_DIR`, `${WORK_DIR}` and the like into paths relative to the workspace. Blank ones are
 * dropped, unknown variables stay, and `$WORK_DIRfoo` is another variable than `$WORK_DIR`.
 */
export function normalizeGlobs(patterns: readonly string[]): string[] {
  return patterns.map((pattern) => withoutVariable(pattern.trim())).filter((pattern) => pattern !== '')
}

/**
 * The directory in which a program starts, relative to the workspace; `.` for the workspace itself. A leading `/` means the root of
 * the workspace.
 * @throws SandglassError `invalid_request` for one outside of the workspace.
 */
export function normalizeCwd(cwd: string): string {
  const path = posix.normalize(withoutVariable(cwd.trim()).replace(/^\/+/, '') || '.').replace(/\/$/, '')
  if (path === '..' || path.startsWith('../'))
    throw invalid('cwd', `${formatValue(cwd)} must stay within the workspace`)
  return path
}

/** Normalises globs for the workspace: removes `./`, repeated `/`, and globs that match only the root. */
export function relativeGlobs(patterns: readonly string[]): string[] {
  return normalizeGlobs(patterns)
    .map((pattern) => posix.normalize(pattern).replace(/\/$/, ''))
    .filter((pattern) => pattern !== '.')
}

function withoutVariable(pattern: string): string {
  const [prefix = '', braced, plain] = PREFIX.exec(pattern) ?? []
  const directory = DIRECTORIES.get(braced ?? plain ?? '')
  if (directory === undefined) return pattern
  const rest = pattern.slice(prefix.length)
  return [directory, rest].filter((part) => part !== '').join('/') || '.'
}
