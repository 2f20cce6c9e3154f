import { Console } from 'node:console'
import { syncBuiltinESMExports } from 'node:module'

/** What writes to stdout of its own accord. */
const TALKING = [
  'log',
  'info',
  'debug',
  'dir',
  'dirxml',
  'table',
  'group',
  'groupCollapsed',
  'count',
  'timeEnd',
  'timeLog',
] as const

let isSent = false

/**
 * From here on `console.log` and its kind write to stderr, for the whole process: stdout carries answers alone, whatever a
 * module of the user's has to say. The methods are exchanged, not the console, so that `node:console` gives them, too.
 */
export function consoleToStderr(): void {
  if (isSent) return
  isSent = true
  const other = new Console({ stdout: process.stderr, stderr: process.stderr })
  for (const name of TALKING) Object.assign(console, { [name]: other[name].bind(other) })
  syncBuiltinESMExports()
}
