import { setTimeout as sleep } from 'node:timers/promises'
import type { RunOptions } from '../../../src/options.ts'
import type { ResourceLimits } from '../../../src/sandbox/index.ts'
import { watchGrowth } from '../../support/memory.ts'
import { type Answer, type Runner, runnerOf, shown } from './answer.ts'
import type { AcceptanceCase, CaseLimits } from './case.ts'
import type { OpenOptions } from './engine.ts'
import { startHost } from './host-process.ts'
import { INVARIANTS } from './invariants.ts'
import { judge } from './judge.ts'
import { Ledger } from './ledger.ts'
import { type Play, playsOf, SCRIPT_KINDS } from './plays.ts'
import { type Setup, SETUPS } from './setups.ts'
import type { Ground, Stage, Verify } from './stage.ts'
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
    ...(setup.tools === undefined ? {} : { tools: setup.tools(runner) }),
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
