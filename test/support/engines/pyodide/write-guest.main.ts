/**
 * Writes the program of Pyodide's instances without its types, as the package has it, into the directory of a test run, which is
 * the argument. An instance cannot cache code, so each would strip the types again: a fifth of its start.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { directoryIn } from './guest-without-types.ts'

const SOURCE = join(import.meta.dirname, '../../../../src/engines/pyodide/guest')

const directory = directoryIn(process.argv[2] ?? '')
mkdirSync(directory, { recursive: true })
writeFileSync(join(directory, 'package.json'), '{"type":"module"}')
for (const name of readdirSync(SOURCE)) {
  const script = stripTypeScriptTypes(readFileSync(join(SOURCE, name), 'utf8'))
  writeFileSync(
    join(directory, name.replace(/\.ts$/, '.js')),
    script.replaceAll(/((?:from |import\()'\.\/[^']+)\.ts'/g, "$1.js'"),
  )
}
