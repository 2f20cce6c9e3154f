import { isUint8Array } from 'node:util/types'
import { invalid } from './invalid.ts'
import { pathProblem } from './paths.ts'
import { formatValue } from '../support/index.ts'

const MAX_FILES = 1000
const MAX_TOTAL_BYTES = 64 * 1024 * 1024
const MAX_PATTERNS = 100
const DEFAULT_MODE = 0o644

/** A file of a request, checked. */
export interface StagedFile {
  readonly path: string
  readonly mode: number
  readonly content: Uint8Array
}

/**
 * The files of a request.
 * @throws SandglassError `invalid_request` naming the path.
 */
export function checkFiles(given: unknown): StagedFile[] {
  if (given === undefined) return []
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalid('files', `${formatValue(given)} is not an object of paths and contents`)
  }
  const entries: [string, unknown][] = Object.entries(given)
  if (entries.length > MAX_FILES) throw invalid('files', `${entries.length} files; at most ${MAX_FILES} in one run`)
  const files = entries.map(([path, value]) => checkFile(path, value))
  const total = files.reduce((sum, file) => sum + file.content.length, 0)
  if (total > MAX_TOTAL_BYTES) throw invalid('files', `${total} bytes; at most ${MAX_TOTAL_BYTES} in one run`)
  refuseFileAsFolder(files)
  return files
}

/**
 * The globs of files to bring back.
 * @throws SandglassError `invalid_request` naming the pattern.
 */
export function checkCollect(given: unknown): string[] {
  if (given === undefined) return []
  if (!Array.isArray(given)) throw invalid('collect', `${formatValue(given)} is not an array of globs`)
  const patterns: unknown[] = given
  if (patterns.length > MAX_PATTERNS) {
    throw invalid('collect', `${patterns.length} globs; at most ${MAX_PATTERNS} in one run`)
  }
  return patterns.map((pattern, index) => {
    const problem = typeof pattern === 'string' ? pathProblem(pattern) : 'it is not a string'
    if (typeof pattern !== 'string' || problem !== undefined) {
      throw invalid(`collect[${index}]`, `${formatValue(pattern)} cannot be used: ${problem}`)
    }
    return pattern
  })
}

function checkFile(path: string, value: unknown): StagedFile {
  const field = `files[${formatValue(path)}]`
  const problem = pathProblem(path)
  if (problem !== undefined) throw invalid(field, `not a path in the workspace: ${problem}`)
  const whole = isContent(value) ? { content: value } : value
  if (typeof whole !== 'object' || whole === null || !Object.hasOwn(whole, 'content')) {
    throw invalid(
      field,
      `${formatValue(value)} cannot be the content of a file: give a string, a Uint8Array or { content, mode? }`,
    )
  }
  const { content, mode = DEFAULT_MODE } = whole as { content: unknown; mode?: unknown }
  if (!isContent(content))
    throw invalid(`${field}.content`, `${formatValue(content)} is neither a string nor a Uint8Array`)
  if (typeof mode !== 'number' || !Number.isInteger(mode) || mode < 0 || mode > 0o777) {
    throw invalid(`${field}.mode`, `${formatValue(mode)} is not a number of permission bits from 0 to 0o777`)
  }
  return { path, mode, content: typeof content === 'string' ? Buffer.from(content) : content }
}

function isContent(value: unknown): value is string | Uint8Array {
  return typeof value === 'string' || isUint8Array(value)
}

function refuseFileAsFolder(files: readonly StagedFile[]): void {
  const paths = new Set(files.map(({ path }) => path))
  for (const path of paths) {
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
      const folder = path.slice(0, end)
      if (paths.has(folder))
        throw invalid('files', `${formatValue(folder)} is a file and the folder of ${formatValue(path)} at once`)
    }
  }
}
