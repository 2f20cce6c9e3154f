import { pathProblem } from '../executor/index.ts'
import { INSIDE } from '../sandbox/index.ts'
import { formatValue } from '../support/index.ts'
import { invalid } from './failures.ts'

/** Checks the path of a file, and returns it. @throws SandglassError `invalid_request` */
export function checkPath(field: string, path: unknown): string {
  const problem = typeof path === 'string' ? pathProblem(path) : 'it is not a string'
  if (typeof path === 'string' && problem === undefined) return path
  throw invalid(field, `${formatValue(path)} is not a path in the workspace: ${problem}`)
}

/** Checks the path of a directory, and returns it; '' for the root ('' or '.'). @throws SandglassError `invalid_request` */
export function checkDirectory(field: string, path: unknown): string {
  return path === '' || path === '.' ? '' : checkPath(field, path)
}

/**
 * Checks the working directory of a program: a directory of the workspace, or one below `/inputs`. @throws SandglassError
 * `invalid_request`
 */
export function checkCwd(path: unknown): string {
  const root = `${INSIDE.inputs}/`
  if (typeof path !== 'string' || !path.startsWith(root)) return checkDirectory('cwd', path)
  return root + checkPath('cwd', path.slice(root.length))
}
