import type { RunOptions } from '../../../src/options/index.ts'
import { type Answer, describeAnswer } from './answer.ts'
import { ANSWER_CHECKS, checkAnswers } from './answer-checks.ts'
import type { Check } from './case.ts'
import { INVARIANTS } from './invariants.ts'
import type { Ledger } from './ledger.ts'
import type { Problem, CaseState, Verify } from './case-state.ts'
import { checkStatic } from './static-check.ts'

/** Checks that were prepared before the case: one per invariant, and those of its setup. */
export interface PreparedChecks {
  readonly before: ReadonlyMap<string, Verify>
  readonly extra: readonly Verify[]
}

/** Evaluates every key of a case, in an order in which no check disturbs the next one. */
export async function evaluateChecks(
  state: CaseState,
  ledger: Ledger,
  answers: readonly Answer[],
  prepared: PreparedChecks,
): Promise<string[]> {
  const { check, followup } = state.case
  const problems: string[] = []
  const note = (key: string, problem: Problem): void => {
    ledger.add(key)
    if (problem !== undefined)
      problems.push(key.startsWith('host.') || key === 'expected' ? `${key}: ${problem}` : problem)
  }
  for (const [name, verify] of prepared.before) if (!LAST.has(name)) note(`host.${name}`, await verify(answers))
  for (const [key, wanted] of Object.entries(check)) {
    if (expectsStaticReject(check) && key === 'final_data_not') note('expected', findLostRun(answers))
    else if (ANSWER_CHECKS.has(key)) note(key, checkAnswers(key, wanted, answers))
    else if (key === 'host_rss_growth_mb_max') note(key, checkGrowth(state, Number(wanted)))
    else if (key === 'static') {
      note(key, await checkStatic(state, String(wanted)))
      if (expectsStaticReject(check)) ledger.add('final_data_not') // checkStatic has evaluated it
    } else if (key === 'collect') note(key, checkCollection(wanted as Collect, answers))
    else if (!OTHERS.has(key)) problems.push(`unknown key ${key}`)
  }
  for (const verify of prepared.extra) note('expected', await verify(answers))
  if (followup !== undefined) problems.push(...(await runFollowup(state, ledger, answers, followup)))
  if (check['next_run_ok'] === true) note('next_run_ok', await checkNextRun(state))
  for (const name of LAST) {
    const verify = prepared.before.get(name)
    if (verify !== undefined) note(`host.${name}`, await verify(answers))
  }
  for (const name of (check['host'] ?? []) as string[])
    if (!INVARIANTS.has(name)) problems.push(`unknown invariant ${name}`)
  return problems
}

/** Invariants that are checked after all runs, in this order: the last one closes the runner of the case. */
const LAST: ReadonlySet<string> = new Set(['host_load_recovers', 'workspace_removed', 'no_leaked_containers'])
const OTHERS: ReadonlySet<string> = new Set(['host', 'next_run_ok'])

function checkGrowth({ growth }: CaseState, max: number): Problem {
  return growth.mebibytes <= max
    ? undefined
    : `this process grew by ${Math.round(growth.mebibytes)} MiB; the limit is ${max} MiB`
}

/** With the checker off such a script may run inside the sandbox and find data there that is not secret. */
function expectsStaticReject(check: Check): boolean {
  return check['static'] === 'reject' && 'final_data_not' in check
}

function findLostRun(answers: readonly Answer[]): Problem {
  const lost = answers.find(({ result }) => result === null || result.errorKind === 'infrastructure')
  return lost === undefined ? undefined : `with the checker off: ${describeAnswer(lost)}`
}

interface Collect {
  readonly max_wall_s: number
  readonly limits_hit: boolean
}

/** Checks limits and time of the collection. The time starts with the final result, so it includes kill and wipe. */
function checkCollection(wanted: Collect, answers: readonly Answer[]): Problem {
  const [answer] = answers
  if (answer === undefined || answer.result === null || answer.afterResultMs === null)
    return 'collect: the run has no result'
  const { limitsHit, files } = answer.result
  if (limitsHit.length > 0 !== wanted.limits_hit)
    return `collect: limits hit were ${limitsHit.join()} of ${files.length} files`
  return answer.afterResultMs <= wanted.max_wall_s * 1000 ? undefined : `collect: it took ${answer.afterResultMs} ms`
}

async function runFollowup(
  { runner, case: { mode } }: CaseState,
  ledger: Ledger,
  answers: readonly Answer[],
  followup: { readonly script: string; readonly check: Check },
): Promise<string[]> {
  const sandboxId = answers.at(-1)?.result?.sandbox.id
  const options: RunOptions = {
    mode: mode === 'PLAN' ? 'plan' : 'interactive',
    ...(sandboxId === undefined ? {} : { sandboxId }),
  }
  const answer = await runner.run(followup.script, options)
  return Object.entries(followup.check).flatMap(([key, wanted]) => {
    ledger.add(`followup.${key}`)
    const problem = checkAnswers(key, wanted, [answer])
    return problem === undefined ? [] : [`followup.${problem}`]
  })
}

async function checkNextRun({ runner }: CaseState): Promise<Problem> {
  const answer = await runner.run('emit_result(1)', {})
  const fine = answer.result?.success === true && answer.result.finalData === 1 && answer.wallMs <= 10_000
  return fine ? undefined : `next_run_ok: ${describeAnswer(answer)}`
}
