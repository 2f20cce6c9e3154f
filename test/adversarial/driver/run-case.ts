import { setTimeout as sleep } from 'node:timers/promises'
import type { RunOptions } from '../../../src/sandglass.ts'
import type { ResourceLimits } from '../../../src/sandbox/index.ts'
import { watchGrowth } from '../../support/memory.ts'
import { type Answer, type Runner, runnerOf, shown } from './answer.ts'
import { ANSWER_CHECKS, checkAnswers } from './answer-checks.ts'
import type { AcceptanceCase, CaseLimits, Check } from './case.ts'
import type { OpenOptions } from './engine.ts'
import { startHost } from './host-process.ts'
import { INVARIANTS } from './invariants.ts'
import { Ledger } from './ledger.ts'
import { type Play, playsOf, SCRIPT_KINDS } from './plays.ts'
import { type Setup, SETUPS } from './setups.ts'
import type { Ground, Problem, Stage, Verify } from './stage.ts'
import { hostilesOf, runAgainst, WIRE_KINDS } from './wire.ts'

/** Asserts what a case expects that has no keys; throws when it does not hold. */
export type Assertion = (ground: Ground) => Promise<void>

/** Runs one case and evaluates everything that it asks for. Throws an error that lists what did not hold. */
export async function runCase(
  given: AcceptanceCase,
  ground: Ground,
  assertion: Assertion | undefined,
): Promise<Ledger> {
  const ledger = new Ledger(given)
  const problems: string[] = []
  if (given.setup !== undefined && !SETUPS.has(given.id)) problems.push(`nobody sets up: ${given.setup}`)
  if (WIRE_KINDS.includes(given.kind)) problems.push(...(await onTheWire(given, ground, ledger)))
  else if (assertion === undefined && SCRIPT_KINDS.includes(given.kind))
    problems.push(...(await onTheEngine(given, ground, ledger)))
  if (assertion !== undefined) {
    await assertion(ground)
    ledger.add('expected')
  }
  problems.push(...ledger.missing().map((key) => `nobody evaluated ${key}`))
  if (problems.length > 0)
    throw new Error(`${given.id} ${given.title}\nexpected: ${given.expected}\n- ${problems.join('\n- ')}`)
  return ledger
}

async function onTheWire(given: AcceptanceCase, ground: Ground, ledger: Ledger): Promise<string[]> {
  const { hostiles, dispose } = hostilesOf(given, ground.fixtures)
  const { repeat = 1, expect } = SETUPS.get(given.id) ?? {}
  const grown = watchGrowth()
  const answers: Answer[] = []
  const runners: Runner[] = []
  for (const hostile of Array.from({ length: repeat }, () => hostiles).flat()) {
    const { answer, runner } = await runAgainst(hostile, ground.fixtures, modeOf(given))
    answers.push(answer)
    runners.push(runner)
  }
  dispose()
  const growth = { mebibytes: grown() }
  const [runner] = runners
  if (runner === undefined) throw new Error(`${given.id}: nothing was run`)
  const stage = { case: given, ground, runner, warm: undefined, options: {}, growth }
  try {
    return await judge(stage, ledger, answers, { before: new Map(), extra: expect === undefined ? [] : [expect] })
  } finally {
    for (const each of runners) await each.close()
  }
}

async function onTheEngine(given: AcceptanceCase, ground: Ground, ledger: Ledger): Promise<string[]> {
  const setup = SETUPS.get(given.id) ?? {}
  const { runner, close } = await runnerFor(given, setup, ground)
  try {
    const stage = { ...(await prepared(given, setup, ground, runner)), growth: { mebibytes: 0 } }
    const before = new Map<string, Verify>()
    for (const name of (given.check['host'] ?? []) as string[]) {
      const watch = INVARIANTS.get(name)
      if (watch !== undefined) before.set(name, await watch(stage))
    }
    const beside = await setup.beside?.(stage)
    const extra = [beside, setup.expect].filter((verify) => verify !== undefined)
    const grown = watchGrowth()
    const answers = await allPlays(given, setup, stage)
    stage.growth.mebibytes = grown()
    return await judge(stage, ledger, answers, { before, extra })
  } finally {
    await close()
  }
}

/** A case that looks at the whole sandbox, or has limits or a host of its own, shares it with nobody. */
async function runnerFor(
  given: AcceptanceCase,
  setup: Setup,
  ground: Ground,
): Promise<{ runner: Runner; close: () => Promise<void> }> {
  const alone =
    given.check['host'] !== undefined ||
    given.limits !== undefined ||
    setup.open !== undefined ||
    setup.beside !== undefined
  const options: OpenOptions = {
    poolSize: 1,
    maxOverflow: 1,
    limits: limitsOf(given.limits),
    ...setup.open?.(ground.fixtures),
  }
  if (setup.child !== undefined) {
    const host = startHost(ground.engine, setup.child(ground.fixtures))
    await host.open(options)
    return { runner: host, close: async () => host[Symbol.asyncDispose]() }
  }
  if (!alone) return { runner: ground.shared, close: () => Promise.resolve() }
  const runner = runnerOf(await ground.engine.open(options))
  return { runner, close: () => runner.close() }
}

async function prepared(
  given: AcceptanceCase,
  setup: Setup,
  ground: Ground,
  runner: Runner,
): Promise<Omit<Stage, 'growth'>> {
  const timeout = given.timeout_s === undefined ? {} : { limits: { executionTimeoutSec: given.timeout_s } }
  const collect = given.check['collect'] as { globs: string[] } | undefined
  const options: RunOptions = {
    mode: modeOf(given),
    ...timeout,
    ...(collect === undefined ? {} : { collect: collect.globs }),
    ...setup.run?.(ground.fixtures),
  }
  if (runner === ground.shared) return { case: given, ground, runner, options, warm: undefined }
  const first = await runner.run('emit_result(0)', {})
  if (first.result === null) throw new Error(`${given.id}: the first run failed: ${shown(first)}`)
  const sandboxId = first.result.sandbox.id
  return {
    case: given,
    ground,
    runner,
    options,
    warm: { sandboxId, processes: await processesAtRest(ground, sandboxId) },
  }
}

/** The harness makes ready for its next run after it has answered. */
async function processesAtRest({ engine }: Ground, sandboxId: string): Promise<number> {
  for (let last = -1; ;) {
    const count = engine.processesOf(sandboxId).length
    if (count === last) return count
    last = count
    await sleep(150)
  }
}

async function allPlays(given: AcceptanceCase, setup: Setup, stage: Stage): Promise<Answer[]> {
  const { plays, together } = playsOf(given, stage.ground.fixtures)
  const runOne = ({ script, options }: Play): Promise<Answer> =>
    stage.runner.run(script, { ...stage.options, ...options })
  if (together) return Promise.all(plays.map(runOne))
  const answers: Answer[] = []
  for (const play of Array.from({ length: setup.repeat ?? 1 }, () => plays).flat()) answers.push(await runOne(play))
  return answers
}

interface Watched {
  readonly before: ReadonlyMap<string, Verify>
  readonly extra: readonly Verify[]
}

/** Goes through every key, in an order in which no look disturbs the next one. */
async function judge(stage: Stage, ledger: Ledger, answers: readonly Answer[], watched: Watched): Promise<string[]> {
  const { check, followup } = stage.case
  const problems: string[] = []
  const note = (key: string, problem: Problem): void => {
    ledger.add(key)
    if (problem !== undefined)
      problems.push(key.startsWith('host.') || key === 'expected' ? `${key}: ${problem}` : problem)
  }
  for (const [name, verify] of watched.before) if (!LAST.has(name)) note(`host.${name}`, await verify(answers))
  for (const [key, wanted] of Object.entries(check)) {
    if (ANSWER_CHECKS.has(key)) note(key, checkAnswers(key, wanted, answers))
    else if (key === 'host_rss_growth_mb_max') note(key, grewBy(stage, Number(wanted)))
    else if (key === 'collect') note(key, collected(wanted as Collect, answers))
    else if (!OTHERS.has(key) && !Ledger.waits(key)) problems.push(`unknown key ${key}`)
  }
  for (const verify of watched.extra) note('expected', await verify(answers))
  if (followup !== undefined) problems.push(...(await follow(stage, ledger, answers, followup)))
  if (check['next_run_ok'] === true) note('next_run_ok', await nextRun(stage))
  for (const [name, verify] of watched.before) if (LAST.has(name)) note(`host.${name}`, await verify(answers))
  for (const name of (check['host'] ?? []) as string[])
    if (!INVARIANTS.has(name)) problems.push(`unknown invariant ${name}`)
  return problems
}

/** Looked at when nothing of the case runs any more. */
const LAST: ReadonlySet<string> = new Set(['host_load_recovers', 'workspace_removed'])
const OTHERS: ReadonlySet<string> = new Set(['host', 'next_run_ok'])

function grewBy({ growth }: Stage, most: number): Problem {
  return growth.mebibytes <= most
    ? undefined
    : `this process grew by ${Math.round(growth.mebibytes)} MiB, at most ${most}`
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

function modeOf({ mode }: AcceptanceCase): 'plan' | 'interactive' {
  return mode === 'PLAN' ? 'plan' : 'interactive'
}

const MiB = 1024 * 1024

/** @throws Error for a limit that has no place here: it must not be ignored. */
function limitsOf(limits: CaseLimits = {}): ResourceLimits {
  const entries = Object.entries(limits).map(([name, value]): [string, number] => {
    if (name === 'memory_mb') return ['memoryBytes', value * MiB]
    if (name === 'disk_mb') return ['diskBytes', value * MiB]
    if (name === 'pids' || name === 'cpus') return [name, value]
    throw new Error(`no limit ${name}`)
  })
  return Object.fromEntries(entries)
}
