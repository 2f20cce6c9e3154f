/**
 * Runs the adversarial suite: `npm run adversarial`. Options follow `--`:
 *
 * - `--engine local,docker,pyodide` selects engines, which must be usable. Default: all that this machine can run; `all`
 *   requires every engine.
 * - `--full` runs every case of this suite, of the conformance suite and of the tests of tools and tasks. Without it, an engine
 *   runs the cases that its own walls decide (`walls.ts`), and a sample of the others.
 * - `--list` shows which case runs on which engine, and runs none.
 * - `--mutate` removes the defences of the engine `local`, one at a time, in a copy of this tree. It fails if the removal of
 *   one makes no test fail. `--only NAME[,NAME]` selects defences. `--write` lists the tests that noticed it in SECURITY.md.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { copyTree } from './mutations/copy.ts'
import { type Lane, openLane } from './mutations/lane.ts'
import { CONTROL, type TestSelection, type Mutation } from './mutations/mutation.ts'
import { MUTATIONS } from './mutations/mutations.ts'
import { type Noticed, readNoticed, RECORD, withSection } from './mutations/noticed.ts'
import type { Trial } from './mutations/trial.ts'
import { MACHINE_ENGINES } from '../../test/support/walls.ts'
import { filesOf } from './files.ts'
import { machine } from '../../test/support/machine.ts'
import { planTable, plannedCases } from './plan.ts'
import { nameOf, problemOfBaseline, type Verdict, verdictOn } from './mutations/verdict.ts'

const SECURITY = new URL('../../SECURITY.md', import.meta.url)

const { values } = parseArgs({
  options: {
    engine: { type: 'string' },
    full: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    mutate: { type: 'boolean', default: false },
    only: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
const interruption = new AbortController()
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => interruption.abort())

if (values.full) process.env['SANDGLASS_TEST_FULL'] = '1'
if (values.list) console.log(planTable(plannedCases()))
else process.exitCode = values.mutate ? await mutate() : await suite(enginesOf(values.engine))

/** Runs the suite on the given engines, which must be usable, or on all usable ones. */
async function suite(engines: readonly string[] | undefined): Promise<number> {
  const files = filesOf(engines, { withOthers: values.full })
  const required = values.engine === 'all' ? [...MACHINE_ENGINES, 'gvisor'].join(',') : engines?.join(',')
  const child = spawn('vitest', ['run', ...files], {
    stdio: 'inherit',
    env: { ...process.env, ...(required === undefined ? {} : { SANDGLASS_TEST_REQUIRE: required }) },
  })
  interruption.signal.addEventListener('abort', () => child.kill('SIGTERM'))
  const [code] = (await once(child, 'exit')) as [number | null]
  return code ?? 1
}

async function mutate(): Promise<number> {
  if (values.engine !== undefined && values.engine !== 'local') throw new TypeError('--mutate is for the engine local')
  const started = performance.now()
  const chosen = chosenMutations()
  const verdicts = new Map<string, Verdict>()
  // All mutations use this copy, so that edits during the run do not matter.
  await using lane = await openLane(copyTree())
  try {
    await baseline(chosen, lane)
    for (const [index, mutation] of chosen.entries()) {
      const { verdict, seconds } = await tryMutation(mutation, lane)
      verdicts.set(mutation.name, verdict)
      const { noticed, problem } = verdict
      const outcome = problem ?? `${noticed.length} tests notice`
      console.log(`${index + 1}/${chosen.length} ${mutation.name}: ${outcome} (${seconds} s)`)
    }
  } catch (error) {
    if (!interruption.signal.aborted) throw error
    console.error('interrupted')
    return 130
  }
  console.log(`\n${tableOf(chosen, verdicts)}`)
  const missed = chosen.filter(({ name }) => verdicts.get(name)?.problem !== undefined)
  if (missed.length > 0) {
    console.error(`not noticed: ${missed.map(({ name }) => name).join(', ')}`)
    return 1
  }
  const minutes = Math.ceil((performance.now() - started) / 60_000)
  console.log(`${minutes} minutes`)
  if (values.write) record(verdicts, minutes)
  return 0
}

/** Runs the tests without a mutation. All must pass, or later failures prove nothing. */
async function baseline(chosen: readonly Mutation[], lane: Lane): Promise<void> {
  const selections = [CONTROL, ...chosen.flatMap(({ selected }) => selected)]
  const { trial, seconds } = await timed(lane, [], selections)
  const problem = problemOfBaseline(selections, trial)
  if (problem !== undefined) throw new Error(`${problem}\n${trial.output.slice(-4000)}`)
  console.log(`without a mutation: ${trial.tests.length} tests pass (${seconds} s)`)
}

async function tryMutation(mutation: Mutation, lane: Lane): Promise<{ verdict: Verdict; seconds: number }> {
  const { trial, seconds } = await timed(lane, mutation.patches, [CONTROL, ...mutation.selected])
  const verdict = verdictOn(mutation, trial)
  for (const test of trial.tests.filter(({ passed }) => !passed)) {
    console.log(`  ${nameOf(test)}\n    ${inOneLine(test.why ?? '')}`)
  }
  if (verdict.problem !== undefined) console.error(trial.output.slice(-4000))
  return { verdict, seconds }
}

async function timed(
  lane: Lane,
  patches: Mutation['patches'],
  selections: readonly TestSelection[],
): Promise<{ trial: Trial; seconds: number }> {
  const started = performance.now()
  const trial = await lane.tryOut(selections, patches, interruption.signal)
  return { trial, seconds: Math.round((performance.now() - started) / 1000) }
}

/** The message of an assertion in one line, without the stack. */
function inOneLine(why: string): string {
  const words = why.split(/\n\s+at /)[0] ?? ''
  return words.replaceAll(/\s+/g, ' ').trim().slice(0, 600)
}

function tableOf(chosen: readonly Mutation[], verdicts: ReadonlyMap<string, Verdict>): string {
  return chosen
    .map(({ name, defence }) => {
      const { noticed = [], problem } = verdicts.get(name) ?? {}
      return [`${name} (${defence})`, ...(problem === undefined ? noticed : [problem])].join('\n    ')
    })
    .join('\n')
}

/** Records the verdicts. Mutations that were not tried keep their last record. */
function record(verdicts: ReadonlyMap<string, Verdict>, minutes: number): void {
  const before = existsSync(RECORD) ? readNoticed().noticed : {}
  const found: Noticed = {
    engine: 'local',
    machine: machine(),
    ...(verdicts.size === MUTATIONS.length ? { minutes } : {}),
    noticed: Object.fromEntries(MUTATIONS.map(({ name }) => [name, verdicts.get(name)?.noticed ?? before[name] ?? []])),
  }
  writeFileSync(RECORD, `${JSON.stringify(found, null, 2)}\n`)
  spawnSync('oxfmt', [fileURLToPath(RECORD)], { stdio: 'inherit' })
  writeFileSync(SECURITY, withSection(readFileSync(SECURITY, 'utf8'), found))
}

function chosenMutations(): readonly Mutation[] {
  const names = values.only?.split(',')
  const unknown = names?.filter((name) => !MUTATIONS.some((one) => one.name === name)) ?? []
  const known = MUTATIONS.map(({ name }) => name).join(', ')
  if (unknown.length > 0) throw new TypeError(`unknown mutation ${unknown.join(', ')}; use ${known}`)
  return MUTATIONS.filter(({ name }) => names?.includes(name) ?? true)
}

function enginesOf(list: string | undefined): readonly string[] | undefined {
  const engines = list === 'all' ? MACHINE_ENGINES : list?.split(',')
  const unknown = engines?.filter((engine) => !MACHINE_ENGINES.some((name) => name === engine)) ?? []
  if (unknown.length > 0) throw new TypeError(`unknown engine ${unknown.join(', ')}; use ${MACHINE_ENGINES.join(', ')}`)
  return engines
}
