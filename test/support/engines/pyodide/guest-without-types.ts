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
  mkdirSync(directory)
  for (const name of readdirSync(SOURCE)) {
    const script = stripTypeScriptTypes(readFileSync(join(SOURCE, name), 'utf8'))
    writeFileSync(
      join(directory, name.replace(/\.ts$/, '.mjs')),
      script.replaceAll(/(from '\.\/[^']+)\.ts'/g, "$1.mjs'"),
    )
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
      return code.replace(LOOKUP, `new URL('${pathToFileURL(join(directoryIn(run), 'main.mjs')).href}')`)
    },
  }
}

function directoryIn(run: string): string {
  return join(run, 'guest')
}
