import { readFileSync } from 'node:fs'
import { Script } from 'node:vm'

const FILE = 'pyodide.asm.mjs'
const EXPORT = 'export default _createPyodideModule;'
const OWN_URL = 'import.meta.url'

/** Pyodide's JavaScript beneath its interface. */
export interface Program {
  /** What `loadPyodide` takes as `createPyodideModule`. */
  readonly create: unknown
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
  const url = JSON.stringify(`file://${directory}${FILE}`)
  const source = `(() => {"use strict";${body.replace(EXPORT, '').replaceAll(OWN_URL, url)}return _createPyodideModule})()`
  const script = new Script(source, { filename: FILE, ...(compiled === undefined ? {} : { cachedData: compiled }) })
  return { create: script.runInThisContext(), compiled: () => script.createCachedData() }
}
