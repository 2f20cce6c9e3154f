import { isDeepStrictEqual } from 'node:util'
import { type Answer, describeAnswer } from './answer.ts'
import { firstOf, type Problem } from './case-state.ts'

/** Checks one answer. */
type AnswerCheck = (wanted: unknown, answer: Answer) => Problem

/** Keys of `check` that are evaluated on the answer of a run. */
export const ANSWER_CHECKS: ReadonlyMap<string, AnswerCheck> = new Map<string, AnswerCheck>([
  [
    'success',
    (wanted, { result }) => unless(wanted === 'any' || (result?.success ?? false) === wanted, 'success', wanted),
  ],
  ['final_data_equals', (wanted, { result }) => same(result?.finalData, wanted)],
  ['final_data_length', (wanted, { result }) => unless(lengthOf(result?.finalData) === wanted, 'length', wanted)],
  ['final_data_not', (wanted, { result }) => noneOf(members(result?.finalData), wanted as Members)],
  [
    'final_data_max',
    (wanted, { result }) => atMost(members(result?.finalData), wanted as Members, (value) => Number(value)),
  ],
  ['final_data_max_len', (wanted, { result }) => atMost(members(result?.finalData), wanted as Members, lengthOf)],
  [
    'error_kind_any_of',
    (wanted, { errorKind }) => unless((wanted as unknown[]).includes(errorKind), 'error kind one of', wanted),
  ],
  ['max_wall_s', (wanted, { runMs }) => unless(runMs <= Number(wanted) * 1000, 'at most in seconds', wanted)],
  [
    'traceback_max_bytes',
    (wanted, answer) => unless(longestText(answer) <= Number(wanted), 'error and traceback in bytes', wanted),
  ],
  [
    'intermediates_count',
    (wanted, { result }) => unless(result?.intermediates.length === wanted, 'intermediates', wanted),
  ],
  [
    'no_event_containing',
    (wanted, answer) => unless(!everythingOf(answer).includes(String(wanted)), 'nothing containing', wanted),
  ],
])

/** Evaluates a key on every answer; all must pass. */
export function checkAnswers(key: string, wanted: unknown, answers: readonly Answer[]): Problem {
  const check = ANSWER_CHECKS.get(key)
  if (check === undefined) return `no check exists for the key ${key}`
  const found = answers.map((answer) => {
    const problem = check(wanted, answer)
    return problem === undefined ? undefined : `${key}: ${problem}; the run was: ${describeAnswer(answer)}`
  })
  return answers.length === 0 ? `${key}: nothing was run` : firstOf(found)
}

/** All of a run's data that the caller can see, as text. */
export function everythingOf({ result, thrown, events }: Answer): string {
  const files = (result?.files ?? []).map(({ content }) => Buffer.from(content).toString('latin1'))
  return JSON.stringify({ result: { ...result, files: result?.files.map(({ path }) => path) }, thrown, events, files })
}

type Members = Readonly<Record<string, unknown>>

function members(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {}
}

function unless(holds: boolean, what: string, wanted: unknown): Problem {
  return holds ? undefined : `wanted ${what} ${JSON.stringify(wanted)}`
}

function same(found: unknown, wanted: unknown): Problem {
  return unless(isDeepStrictEqual(found, wanted), 'exactly', wanted)
}

function noneOf(found: Members, wanted: Members): Problem {
  const bad = Object.entries(wanted).filter(([key, value]) => isDeepStrictEqual(found[key], value))
  return unless(bad.length === 0, 'none of', wanted)
}

/** Ignores missing members: another key says whether they are required. */
function atMost(found: Members, wanted: Members, measure: (value: unknown) => number): Problem {
  const over = Object.entries(wanted).filter(([key, value]) => key in found && !(measure(found[key]) <= Number(value)))
  return unless(over.length === 0, 'at most', wanted)
}

function lengthOf(value: unknown): number {
  return Array.isArray(value) || typeof value === 'string' ? value.length : Number.NaN
}

function longestText({ result, events }: Answer): number {
  const reported = events.flatMap((event) => (event.type === 'error' ? [event.message, event.traceback] : []))
  const warned = (result?.warnings ?? []).flatMap(({ message, traceback }) => [message, traceback])
  const texts = [result?.error, result?.traceback, ...reported, ...warned]
  return Math.max(0, ...texts.map((text) => Buffer.byteLength(text ?? '')))
}
