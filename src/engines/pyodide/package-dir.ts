import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, sep } from 'node:path'
import { messageOf, SandglassError } from '../../errors/index.ts'

/** The only supported version: the engine uses interfaces that are not public. */
export const PYODIDE_VERSION = '314.0.7'

/**
 * Finds the directory of the npm package `pyodide`, with a separator at its end. Loads nothing of it into this process.
 * @throws SandglassError `pyodide_missing` if it is not installed, or in another version.
 */
export function findPyodideDirectory(): string {
  let path: string
  try {
    path = createRequire(import.meta.url).resolve('pyodide/package.json')
  } catch (error) {
    throw pyodideMissing('the engine pyodide needs the npm package pyodide, which is not installed', error)
  }
  const version = versionIn(path)
  if (version !== PYODIDE_VERSION)
    throw pyodideMissing(`pyodide ${version} is installed, and this version of sandglass needs another`)
  return dirname(path) + sep
}

function pyodideMissing(what: string, cause?: unknown): SandglassError {
  return new SandglassError('pyodide_missing', `${what}: npm install pyodide@${PYODIDE_VERSION}`, { cause })
}

function versionIn(path: string): string {
  try {
    return String((JSON.parse(readFileSync(path, 'utf8')) as { version?: unknown }).version)
  } catch (error) {
    return messageOf(error)
  }
}
