import type { Policy } from '../../../src/executor/index.ts'
import { type Answer, describeAnswer } from './answer.ts'
import { ANSWER_CHECKS, checkAnswers } from './answer-checks.ts'
import { runsOf } from './case-runs.ts'
import { firstOf, type Problem, type CaseState } from './case-state.ts'

/** Policies to test, by value of `static`: `allow` must pass both, `reject` must be rejected by the strict one. */
const POLICIES: Readonly<Record<string, readonly Policy[]>> = {
  allow: ['standard', 'strict'],
  reject: ['strict'],
  any: ['strict'],
}

/** Evaluates the key `static`: runs the same scripts again with the checker on. */
export async function checkStatic(state: CaseState, wanted: string): Promise<Problem> {
  const policies = POLICIES[wanted]
  if (policies === undefined) return `static: unknown value ${wanted}; use ${Object.keys(POLICIES).join(', ')}`
  const { runs } = runsOf(state.case, state.context.fixtures)
  const problems: Problem[] = []
  for (const policy of policies) {
    for (const { script, options } of runs) {
      const answer = await state.runner.run(script, { ...state.options, ...options, policy })
      const problem = checkAnswer(state, wanted, answer)
      problems.push(problem === undefined ? undefined : `static ${wanted}, policy ${policy}: ${problem}`)
    }
  }
  return firstOf(problems)
}

function checkAnswer({ case: { check } }: CaseState, wanted: string, answer: Answer): Problem {
  const { result, events } = answer
  const rejected = result?.status === 'rejected'
  if (wanted === 'reject' && !rejected) return `it was not rejected: ${describeAnswer(answer)}`
  if (wanted === 'allow' && rejected) return `it was rejected: ${describeAnswer(answer)}`
  if (rejected) {
    if (events.length > 0) return `part of the script ran: ${events.map(({ type }) => type).join()}`
    const silent = result.violations.filter(({ line, message }) => line < 1 || message === '')
    if (result.violations.length === 0 || silent.length > 0) return 'the violations must name a line and a construct'
  }
  // The other keys must hold with the checker on as well.
  const keys = Object.entries(check).filter(([key]) => ANSWER_CHECKS.has(key))
  return firstOf(keys.map(([key, value]) => checkAnswers(key, value, [answer])))
}
