import type { RunOptions } from '../../../src/options.ts'
import { type Answer, shown } from './answer.ts'
import { ANSWER_CHECKS, checkAnswers } from './answer-checks.ts'
import type { Check } from './case.ts'
import { INVARIANTS } from './invariants.ts'
import type { Ledger } from './ledger.ts'
import type { Problem, Stage, Verify } from './stage.ts'
import { checkStatic } from './static-check.ts'

/** What was prepared before the case: by invariant, and beyond them. */
export interface Watched {
  readonly before: ReadonlyMap<string, Verify>
  readonly extra: readonly Verify[]
}

/** Goes through every key, in an order in which no look disturbs the next one. */
export async function judge(
  stage: Stage,
  ledger: Ledger,
  answers: readonly Answer[],
  watched: Watched,
): Promise<string[]> {
  const { check, followup } = stage.case
  const problems: string[] = []
  const note = (key: string, problem: Problem): void => {
    ledger.add(key)
    if (problem !== undefined)
      problems.push(key.startsWith('host.') || key === 'expected' ? `${key}: ${problem}` : problem)
  }
  for (const [name, verify] of watched.before) if (!LAST.has(name)) note(`host.${name}`, await verify(answers))
  for (const [key, wanted] of Object.entries(check)) {
    if (staticReject(check) && key === 'final_data_not') note('expected', ended(answers))
    else if (ANSWER_CHECKS.has(key)) note(key, checkAnswers(key, wanted, answers))
    else if (key === 'host_rss_growth_mb_max') note(key, grewBy(stage, Number(wanted)))
    else if (key === 'static') {
      note(key, await checkStatic(stage, String(wanted)))
      if (staticReject(check)) ledger.add('final_data_not') // looked at with the checker alone
    } else if (key === 'collect') note(key, collected(wanted as Collect, answers))
    else if (!OTHERS.has(key)) problems.push(`unknown key ${key}`)
  }
  for (const verify of watched.extra) note('expected', await verify(answers))
  if (followup !== undefined) problems.push(...(await follow(stage, ledger, answers, followup)))
  if (check['next_run_ok'] === true) note('next_run_ok', await nextRun(stage))
  for (const name of LAST) {
    const verify = watched.before.get(name)
    if (verify !== undefined) note(`host.${name}`, await verify(answers))
  }
  for (const name of (check['host'] ?? []) as string[])
    if (!INVARIANTS.has(name)) problems.push(`unknown invariant ${name}`)
  return problems
}

/** Looked at when nothing of the case runs any more, in this order: the last one closes what the case runs on. */
const LAST: ReadonlySet<string> = new Set(['host_load_recovers', 'workspace_removed', 'no_leaked_containers'])
const OTHERS: ReadonlySet<string> = new Set(['host', 'next_run_ok'])

function grewBy({ growth }: Stage, most: number): Problem {
  return growth.mebibytes <= most
    ? undefined
    : `this process grew by ${Math.round(growth.mebibytes)} MiB, at most ${most}`
}

/** What the checker must stop may run without it, inside the sandbox: what it finds there is no secret. */
function staticReject(check: Check): boolean {
  return check['static'] === 'reject' && 'final_data_not' in check
}

function ended(answers: readonly Answer[]): Problem {
  const lost = answers.find(({ result }) => result === null || result.errorKind === 'infrastructure')
  return lost === undefined ? undefined : `with the checker off: ${shown(lost)}`
}

interface Collect {
  readonly max_wall_s: number
  readonly limits_hit: boolean
}

/** The time counts from the script's result on: kill, collection and wipe. */
function collected(wanted: Collect, answers: readonly Answer[]): Problem {
  const [answer] = answers
  if (answer === undefined || answer.result === null || answer.afterResultMs === null)
    return 'collect: there is no result'
  const { limitsHit, files } = answer.result
  if (limitsHit.length > 0 !== wanted.limits_hit)
    return `collect: limits hit were ${limitsHit.join()} of ${files.length} files`
  return answer.afterResultMs <= wanted.max_wall_s * 1000 ? undefined : `collect: it took ${answer.afterResultMs} ms`
}

async function follow(
  { runner, case: { mode } }: Stage,
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

async function nextRun({ runner }: Stage): Promise<Problem> {
  const answer = await runner.run('emit_result(1)', {})
  const fine = answer.result?.success === true && answer.result.finalData === 1 && answer.wallMs <= 10_000
  return fine ? undefined : `next_run_ok: ${shown(answer)}`
}
