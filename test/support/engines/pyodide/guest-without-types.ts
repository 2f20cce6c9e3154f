import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const OWNER = '/src/engines/pyodide/environment.ts'
const LOOKUP = /new URL\(`\.\/guest\/main\.[^`]*`, import\.meta\.url\)/

/** Has this process start instances from what write-guest.main.ts has written. */
export function useGuestWithoutTypes(run: string): void {
  registerHooks({
    load(url, context, nextLoad) {
      const module = nextLoad(url, context)
      if (!url.endsWith(OWNER)) return module
      return { ...module, source: withPreparedGuest(url, readFileSync(fileURLToPath(url), 'utf8'), run) }
    },
  })
}

/** The code of a module, which starts instances from what write-guest.main.ts has written. Other modules are unchanged. */
export function withPreparedGuest(place: string, code: string, run: string): string {
  if (!place.endsWith(OWNER)) return code
  if (!LOOKUP.test(code)) throw new Error(`${place} no longer looks for its guest by ${LOOKUP}`)
  return code.replace(LOOKUP, `new URL('${pathToFileURL(join(directoryIn(run), 'main.js')).href}')`)
}

/** The program of instances in the directory of a test run. Tests find their processes by the end of this path. */
export function directoryIn(run: string): string {
  return join(run, 'engines/pyodide/guest')
}
