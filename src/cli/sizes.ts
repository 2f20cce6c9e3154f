import { UsageError } from './failure.ts'

const UNITS: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['b', 1],
  ['k', 1024],
  ['m', 1024 ** 2],
  ['g', 1024 ** 3],
  ['t', 1024 ** 4],
])

/**
 * Parses a number of bytes: `268435456`, `512m`, `1.5g`, `256MiB`. Units are powers of 1024.
 * @throws UsageError naming the flag.
 */
export function parseSize(flag: string, text: string): number {
  const [, digits, unit = ''] = /^(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:i?b)?|b)?$/i.exec(text) ?? []
  const bytes = Number(digits) * (UNITS.get(unit.toLowerCase()) ?? Number.NaN)
  if (!Number.isSafeInteger(bytes)) {
    throw new UsageError(
      'invalid_request',
      `${flag}: ${JSON.stringify(text)} is not a size; write bytes, 512m, 1g or 256MiB`,
    )
  }
  return bytes
}

/** Formats bytes as a flag takes them, in the largest unit that expresses them exactly. */
export function sizeText(bytes: number): string {
  const units = [...UNITS].filter(([unit]) => unit.length === 1 && unit !== 'b').toReversed()
  const [unit, size] = units.find(([, one]) => bytes >= one && bytes % one === 0) ?? ['', 1]
  return `${bytes / size}${unit}`
}

/**
 * Parses a plain number. The code that applies the limit checks its range.
 * @throws UsageError naming the flag.
 */
export function parseNumber(flag: string, text: string): number {
  const number = /^-?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN
  if (!Number.isFinite(number))
    throw new UsageError('invalid_request', `${flag}: ${JSON.stringify(text)} is not a number`)
  return number
}

/**
 * Parses a whole number from `min` to `max`.
 * @throws UsageError naming the flag.
 */
export function parseCount(flag: string, text: string, min: number, max: number): number {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (!(number >= min && number <= max)) {
    throw new UsageError(
      'invalid_request',
      `${flag}: ${JSON.stringify(text)} is not a whole number from ${min} to ${max}`,
    )
  }
  return number
}
