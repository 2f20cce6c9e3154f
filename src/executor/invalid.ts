import { SandglassError } from '../errors/index.ts'

const MAX_SHOWN = 80

/** The error for a field of a request that cannot be run. */
export function invalid(field: string, problem: string): SandglassError {
  return new SandglassError('invalid_request', `${field}: ${problem}`)
}

/** Any value as a short, single-line text for a message. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(cut(value))
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  if (typeof value === 'function') return 'a function'
  return typeof value === 'bigint' ? `${value}n` : String(value)
}

/** `field` with a name from the caller appended, safe to print. */
export function member(field: string, name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? `${field}.${cut(name)}` : `${field}[${JSON.stringify(cut(name))}]`
}

function cut(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}
