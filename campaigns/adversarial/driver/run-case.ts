import type { RunOptions } from '../../../src/options/index.ts'
import type { ResourceLimits } from '../../../src/sandbox/index.ts'
import { watchGrowth } from '../../../test/support/memory.ts'
import { type Answer, type Runner, runnerOf, describeAnswer } from './answer.ts'
import type { AcceptanceCase, CaseLimits } from './case.ts'
import type { OpenOptions } from './engine.ts'
import { countAtRest } from './count-at-rest.ts'
import { startHost } from './host-process.ts'
import { INVARIANTS } from './invariants.ts'
import { evaluateChecks } from './evaluate.ts'
import { Ledger } from './ledger.ts'
import { type CaseRun, runsOf, SCRIPT_KINDS } from './case-runs.ts'
import type { Setup } from './setup.ts'
import { SETUPS } from './setups.ts'
import type { CaseContext, CaseState, Verify } from './case-state.ts'
import { hostilesOf, runAgainst, WIRE_KINDS } from './wire.ts'

/** Checks a case whose expectation is not written as keys; throws when it fails. */
export type Assertion = (context: CaseContext) => Promise<void>

/** Runs one case and evaluates all of its keys. Throws an error that lists every problem. */
export async function runCase(
  given: AcceptanceCase,
  context: CaseContext,
  assertion: Assertion | undefined,
): Promise<Ledger> {
  const ledger = new Ledger(given)
  const problems: string[] = []
  if (given.setup !== undefined && !SETUPS.has(given.id))
    problems.push(`SETUPS has no entry for the setup: ${given.setup}`)
  if (WIRE_KINDS.includes(given.kind)) problems.push(...(await runOnWire(given, context, ledger)))
  else if (assertion === undefined && SCRIPT_KINDS.includes(given.kind))
    problems.push(...(await runOnEngine(given, context, ledger)))
  if (assertion !== undefined) {
    await assertion(context)
    ledger.add('expected')
  }
  problems.push(...ledger.missing().map((key) => `not evaluated: ${key}`))
  if (problems.length > 0)
    throw new Error(`${given.id} ${given.title}\nexpected: ${given.expected}\n- ${problems.join('\n- ')}`)
  return ledger
}

async function runOnWire(given: AcceptanceCase, context: CaseContext, ledger: Ledger): Promise<string[]> {
  const { hostiles, dispose } = hostilesOf(given, context.fixtures)
  const { repeat = 1, expect } = SETUPS.get(given.id) ?? {}
  const grown = watchGrowth()
  const answers: Answer[] = []
  const runners: Runner[] = []
  for (const hostile of Array.from({ length: repeat }, () => hostiles).flat()) {
    const { answer, runner } = await runAgainst(hostile, context.fixtures, modeOf(given))
    answers.push(answer)
    runners.push(runner)
  }
  dispose()
  const growth = { mebibytes: grown() }
  const [runner] = runners
  if (runner === undefined) throw new Error(`${given.id}: nothing was run`)
  const state = { case: given, context, runner, warm: undefined, options: {}, growth }
  try {
    return await evaluateChecks(state, ledger, answers, {
      before: new Map(),
      extra: expect === undefined ? [] : [expect],
    })
  } finally {
    for (const each of runners) await each.close()
  }
}

async function runOnEngine(given: AcceptanceCase, context: CaseContext, ledger: Ledger): Promise<string[]> {
  const setup = SETUPS.get(given.id) ?? {}
  const { runner, close } = await runnerFor(given, setup, context)
  try {
    const state = { ...(await prepareCase(given, setup, context, runner)), growth: { mebibytes: 0 } }
    const before = new Map<string, Verify>()
    for (const name of (given.check['host'] ?? []) as string[]) {
      const watch = INVARIANTS.get(name)
      if (watch !== undefined) before.set(name, await watch(state))
    }
    const beside = await setup.beside?.(state)
    const extra = [beside, setup.expect].filter((verify) => verify !== undefined)
    const grown = watchGrowth()
    const answers = await executeRuns(given, setup, state)
    state.growth.mebibytes = grown()
    return await evaluateChecks(state, ledger, answers, { before, extra })
  } finally {
    await close()
  }
}

/** Gives a case its own runner when it checks the host, sets limits, or needs its own options or host process. */
async function runnerFor(
  given: AcceptanceCase,
  setup: Setup,
  context: CaseContext,
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
    ...setup.open?.(context.fixtures),
  }
  if (setup.child !== undefined) {
    const host = startHost(context.engine, setup.child(context.fixtures))
    await host.open(options)
    return { runner: host, close: async () => host[Symbol.asyncDispose]() }
  }
  if (!alone) return { runner: context.shared, close: () => Promise.resolve() }
  const runner = runnerOf(await context.engine.open(options))
  return { runner, close: () => runner.close() }
}

async function prepareCase(
  given: AcceptanceCase,
  setup: Setup,
  context: CaseContext,
  runner: Runner,
): Promise<Omit<CaseState, 'growth'>> {
  const timeout = given.timeout_s === undefined ? {} : { limits: { executionTimeoutSec: given.timeout_s } }
  const collect = given.check['collect'] as { globs: string[] } | undefined
  const options: RunOptions = {
    mode: modeOf(given),
    ...timeout,
    ...(collect === undefined ? {} : { collect: collect.globs }),
    ...setup.run?.(context.fixtures),
    ...(setup.tools === undefined ? {} : { tools: setup.tools(runner) }),
  }
  if (runner === context.shared) return { case: given, context, runner, options, warm: undefined }
  const first = await runner.run('emit_result(0)', {})
  if (first.result === null) throw new Error(`${given.id}: the first run failed: ${describeAnswer(first)}`)
  const sandboxId = first.result.sandbox.id
  return {
    case: given,
    context,
    runner,
    options,
    warm: { sandboxId, processes: await countAtRest(context.engine, sandboxId) },
  }
}

async function executeRuns(given: AcceptanceCase, setup: Setup, state: CaseState): Promise<Answer[]> {
  const { runs, together } = runsOf(given, state.context.fixtures)
  const runOne = ({ script, options }: CaseRun): Promise<Answer> =>
    state.runner.run(script, { ...state.options, ...options })
  if (together) return Promise.all(runs.map(runOne))
  const answers: Answer[] = []
  for (const run of Array.from({ length: setup.repeat ?? 1 }, () => runs).flat()) answers.push(await runOne(run))
  return answers
}

function modeOf({ mode }: AcceptanceCase): 'plan' | 'interactive' {
  return mode === 'PLAN' ? 'plan' : 'interactive'
}

const MiB = 1024 * 1024

/** @throws Error for an unknown limit, so that it is not ignored. */
function limitsOf(limits: CaseLimits = {}): ResourceLimits {
  const entries = Object.entries(limits).map(([name, value]): [string, number] => {
    if (name === 'memory_mb') return ['memoryBytes', value * MiB]
    if (name === 'disk_mb') return ['diskBytes', value * MiB]
    if (name === 'pids' || name === 'cpus') return [name, value]
    throw new Error(`unknown limit ${name}; use memory_mb, disk_mb, pids or cpus`)
  })
  return Object.fromEntries(entries)
}
