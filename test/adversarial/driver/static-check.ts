import type { Policy } from '../../../src/executor/index.ts'
import { type Answer, shown } from './answer.ts'
import { ANSWER_CHECKS, checkAnswers } from './answer-checks.ts'
import { playsOf } from './plays.ts'
import { firstOf, type Problem, type Stage } from './stage.ts'

/** What a harmless script must pass, and the policy that must stop the others. */
const POLICIES: Readonly<Record<string, readonly Policy[]>> = {
  allow: ['standard', 'strict'],
  reject: ['strict'],
  any: ['strict'],
}

/** The key `static`: the same scripts once more, now through the checker. */
export async function checkStatic(stage: Stage, wanted: string): Promise<Problem> {
  const policies = POLICIES[wanted]
  if (policies === undefined) return `static: nobody knows ${wanted}`
  const { plays } = playsOf(stage.case, stage.ground.fixtures)
  const problems: Problem[] = []
  for (const policy of policies) {
    for (const { script, options } of plays) {
      const answer = await stage.runner.run(script, { ...stage.options, ...options, policy })
      const problem = judged(stage, wanted, answer)
      problems.push(problem === undefined ? undefined : `static ${wanted}, policy ${policy}: ${problem}`)
    }
  }
  return firstOf(problems)
}

function judged({ case: { check } }: Stage, wanted: string, answer: Answer): Problem {
  const { result, events } = answer
  const rejected = result?.status === 'rejected'
  if (wanted === 'reject' && !rejected) return `it was not rejected: ${shown(answer)}`
  if (wanted === 'allow' && rejected) return `it was rejected: ${shown(answer)}`
  if (rejected) {
    if (events.length > 0) return `something of it ran: ${events.map(({ type }) => type).join()}`
    const silent = result.violations.filter(({ line, message }) => line < 1 || message === '')
    if (result.violations.length === 0 || silent.length > 0) return 'a violation names no line or no construct'
  }
  // What holds without the checker holds with it.
  const keys = Object.entries(check).filter(([key]) => ANSWER_CHECKS.has(key))
  return firstOf(keys.map(([key, value]) => checkAnswers(key, value, [answer])))
}
