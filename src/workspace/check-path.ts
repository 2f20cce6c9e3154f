import { pathProblem } from '../executor/index.ts'
import { formatValue } from '../support/index.ts'
import { invalid } from './failures.ts'

/** A path of a file. @throws SandglassError `invalid_request` */
export function checkPath(field: string, path: unknown): string {
  const problem = typeof path === 'string' ? pathProblem(path) : 'it is not a string'
  if (typeof path === 'string' && problem === undefined) return path
  throw invalid(field, `${formatValue(path)} is not a path in the workspace: ${problem}`)
}

/** The path of a directory, which may be the root: '' or '.'. @throws SandglassError `invalid_request` */
export function checkDirectory(field: string, path: unknown): string {
  return path === '' || path === '.' ? '' : checkPath(field, path)
}
