import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { Script } from 'node:vm'

const FILE = 'pyodide.asm.mjs'
const EXPORT = 'export default _createPyodideModule;'
const OWN_URL = 'import.meta.url'
/** Of our own in its place: a name that the program does not use. */
const URL_NAME = '__sandglassOwnUrl'

/** Pyodide's JavaScript beneath its interface. */
export interface Program {
  /** What `loadPyodide` takes as `createPyodideModule`. */
  readonly create: unknown
  /** Whether V8 took what another process had made of it. */
  readonly isFromCache: boolean
  /** What V8 made of it so far, for {@link loadProgram} of another process with the same flags. */
  readonly compiled: () => Uint8Array
}

/**
 * Compiles a megabyte of JavaScript, or goes on from what V8 made of it before. As a script, not as the module that it is:
 * only that can be compiled ahead without write permission, and none of its functions can import anything.
 * @throws Error when it is not as it was known.
 */
export function loadProgram(directory: string, compiled?: Uint8Array): Program {
  const body = readFileSync(`${directory}${FILE}`, 'utf8')
  if (!body.includes(EXPORT)) throw new Error(`${FILE} does not export what it did`)
  // The same text wherever it lies: what V8 made of it is kept for all.
  const source = `((${URL_NAME}) => {"use strict";${body.replace(EXPORT, '').replaceAll(OWN_URL, URL_NAME)}return _createPyodideModule})`
  const script = new Script(source, { filename: FILE, ...(compiled === undefined ? {} : { cachedData: compiled }) })
  const make = script.runInThisContext() as (url: string) => unknown
  return {
    create: make(pathToFileURL(`${directory}${FILE}`).href),
    isFromCache: compiled !== undefined && script.cachedDataRejected === false,
    compiled: () => script.createCachedData(),
  }
}
