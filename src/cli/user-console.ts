import { Console } from 'node:console'
import { syncBuiltinESMExports } from 'node:module'

/** Methods of `console` that write to stdout. */
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
 * Redirects `console.log` and similar methods to stderr, for the whole process: stdout carries answers only, whatever a
 * module of the user prints. The methods are replaced, not the console, so that `node:console` is redirected, too.
 */
export function consoleToStderr(): void {
  if (isSent) return
  isSent = true
  const other = new Console({ stdout: process.stderr, stderr: process.stderr })
  for (const name of TALKING) Object.assign(console, { [name]: other[name].bind(other) })
  syncBuiltinESMExports()
}
