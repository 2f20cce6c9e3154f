import { isAbsolute } from 'node:path'
import { didYouMean, MAX_TIMER_MS } from '../../support/index.ts'
import type { PyodideEngineOptions } from './options.ts'

const CHECKS: Readonly<Record<keyof PyodideEngineOptions, (value: unknown) => string | undefined>> = {
  wheels: path,
  cacheDir: path,
  bubblewrap: (value) => (typeof value === 'boolean' ? undefined : 'must be true or false'),
  startTimeoutMs: (value) =>
    typeof value === 'number' && value >= 1 && value <= MAX_TIMER_MS
      ? undefined
      : `must be a number of milliseconds from 1 to ${MAX_TIMER_MS}`,
  reserveBytes: (value) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
      ? undefined
      : 'must be a whole number of bytes from 0',
}

/** @throws TypeError naming the option that is wrong or does not exist. */
export function checkOptions(options: PyodideEngineOptions): void {
  for (const [name, value] of Object.entries(options) as [keyof PyodideEngineOptions, unknown][]) {
    if (!Object.hasOwn(CHECKS, name)) {
      throw new TypeError(`pyodide.${name}: unknown option.${didYouMean(name, Object.keys(CHECKS))}`)
    }
    const problem = value === undefined ? undefined : CHECKS[name](value)
    if (problem !== undefined) throw new TypeError(`pyodide.${name}: ${problem}, not ${JSON.stringify(value)}`)
  }
}

function path(value: unknown): string | undefined {
  return typeof value === 'string' && isAbsolute(value) && !value.includes('\0')
    ? undefined
    : 'must be an absolute path'
}
