import { countText } from '../support/index.ts'

/** Milliseconds for people: `12.3 ms`, `4.21 s`, `2 min 5 s`. */
export function msText(ms: number): string {
  if (ms < 1000) return `${ms.toFixed(ms < 100 ? 1 : 0)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(2)} s`
  const seconds = Math.round(ms / 1000)
  return `${countText(Math.floor(seconds / 60))} min ${seconds % 60} s`
}

/** A number of things: `1 step`, `2 steps`. */
export function plural(count: number, what: string): string {
  return `${countText(count)} ${what}${count === 1 ? '' : 's'}`
}

/** A time of a journal for people, in UTC: `2026-11-22 18:36:00`. */
export function whenText(at: string): string {
  return Number.isNaN(Date.parse(at)) ? at.slice(0, 24) : new Date(at).toISOString().slice(0, 19).replace('T', ' ')
}
