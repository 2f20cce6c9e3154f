import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { Script } from 'node:vm'

const FILE = 'pyodide.asm.mjs'
const EXPORT = 'export default _createPyodideModule;'
const OWN_URL = 'import.meta.url'
/** The replacement of {@link OWN_URL}: a name that the program does not use. */
const URL_NAME = '__sandglassOwnUrl'

/** The JavaScript part of Pyodide's interpreter. */
export interface Program {
  /** The value for the option `createPyodideModule` of `loadPyodide`. */
  readonly create: unknown
  /** True if V8 accepted the cached code. */
  readonly isFromCache: boolean
  /** Serializes V8's compiled code so far, for {@link loadProgram} in another process with the same flags. */
  readonly createCodeCache: () => Uint8Array
}

/**
 * Compiles a megabyte of JavaScript, or loads V8's cached code of it. The module is compiled as a script: only a script can have
 * cached code without write permission, and its functions cannot import anything.
 * @throws Error if the program does not have the expected export.
 */
export function loadProgram(directory: string, cachedCode?: Uint8Array): Program {
  const body = readFileSync(`${directory}${FILE}`, 'utf8')
  if (!body.includes(EXPORT))
    throw new Error(`${FILE} does not contain "${EXPORT}"; this version of Pyodide is not supported`)
  // The text does not depend on the directory, so that the cached code is valid everywhere.
  const source = `((${URL_NAME}) => {"use strict";${body.replace(EXPORT, '').replaceAll(OWN_URL, URL_NAME)}return _createPyodideModule})`
  const script = new Script(source, { filename: FILE, ...(cachedCode === undefined ? {} : { cachedData: cachedCode }) })
  const make = script.runInThisContext() as (url: string) => unknown
  return {
    create: make(pathToFileURL(`${directory}${FILE}`).href),
    isFromCache: cachedCode !== undefined && script.cachedDataRejected === false,
    createCodeCache: () => script.createCachedData(),
  }
}
