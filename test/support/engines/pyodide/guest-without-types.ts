import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const SOURCE = join(import.meta.dirname, '../../../../src/engines/pyodide/guest')
const OWNER = '/src/engines/pyodide/environment.ts'
const LOOKUP = /new URL\(`\.\/guest\/main\.[^`]*`, import\.meta\.url\)/

/**
 * Writes the program of Pyodide's instances without its types, as the package has it, into the directory of the test run. An
 * instance cannot cache code, so each would strip the types again: a fifth of its start.
 */
export function writeGuest(run: string): void {
  const directory = directoryIn(run)
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}')
  for (const name of readdirSync(SOURCE)) {
    const script = stripTypeScriptTypes(readFileSync(join(SOURCE, name), 'utf8'))
    writeFileSync(join(directory, name.replace(/\.ts$/, '.js')), script.replaceAll(/(from '\.\/[^']+)\.ts'/g, "$1.js'"))
  }
}

/** A plugin of vite with which tests start instances from what {@link writeGuest} has written. */
export function guestWithoutTypes(): {
  readonly name: string
  transform(code: string, id: string): string | undefined
} {
  return {
    name: 'guest-without-types',
    transform(code, id) {
      const run = process.env['SANDGLASS_TEST_RUN']
      if (!id.endsWith(OWNER) || run === undefined) return undefined
      if (!LOOKUP.test(code)) throw new Error(`${id} no longer looks for its guest by ${LOOKUP}`)
      return code.replace(LOOKUP, `new URL('${pathToFileURL(join(directoryIn(run), 'main.js')).href}')`)
    },
  }
}

/** Tests find the processes of instances by the end of this path. */
function directoryIn(run: string): string {
  return join(run, 'engines/pyodide/guest')
}
