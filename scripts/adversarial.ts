/**
 * The adversarial suite: `npm run adversarial`, `-- --engine local,docker,pyodide` (default: all that the machine has).
 * `-- --mutate` takes the defences of the engine `local` away, one at a time, in copies of this tree, and fails for each
 * that no test notices; `--only NAME[,NAME]` tries some of them, `--write` records what noticed in SECURITY.md.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Copy, copyTree } from '../test/adversarial/mutations/copy.ts'
import { CONTROL, type Look, type Mutation } from '../test/adversarial/mutations/mutation.ts'
import { MUTATIONS } from '../test/adversarial/mutations/mutations.ts'
import { type Noticed, readNoticed, RECORD, withSection } from '../test/adversarial/mutations/noticed.ts'
import { tryOut } from '../test/adversarial/mutations/trial.ts'
import { filesOf } from '../test/adversarial/files.ts'
import { machine } from '../test/support/machine.ts'
import { nameOf, problemOfBaseline, type Verdict, verdictOn } from '../test/adversarial/mutations/verdict.ts'

const ENGINES = ['local', 'docker', 'pyodide']
const SECURITY = new URL('../SECURITY.md', import.meta.url)

const { values } = parseArgs({
  options: {
    engine: { type: 'string' },
    mutate: { type: 'boolean', default: false },
    only: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
const interruption = new AbortController()
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => interruption.abort())

process.exitCode = values.mutate ? await mutate() : await suite(enginesOf(values.engine))

/** The suite on some engines, which then have to be usable, or on all that are. */
async function suite(engines: readonly string[] | undefined): Promise<number> {
  const files = filesOf(engines)
  const required = engines?.filter((engine) => engine !== 'pyodide').join(',')
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
  // All are tried with the tree as it is now, whatever is edited meanwhile.
  using tree = copyTree()
  try {
    await baseline(chosen, tree)
    for (const [index, mutation] of chosen.entries()) {
      const { verdict, seconds } = await tryMutation(mutation, tree)
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

/** Without a mutation all must pass, or a failure would tell nothing. */
async function baseline(chosen: readonly Mutation[], tree: Copy): Promise<void> {
  const looks = [CONTROL, ...chosen.flatMap(({ look }) => look)]
  const { trial, seconds } = await timed(tree, [], looks)
  const problem = problemOfBaseline(looks, trial)
  if (problem !== undefined) throw new Error(`${problem}\n${trial.output.slice(-4000)}`)
  console.log(`without a mutation: ${trial.tests.length} tests pass (${seconds} s)`)
}

async function tryMutation(mutation: Mutation, tree: Copy): Promise<{ verdict: Verdict; seconds: number }> {
  const { trial, seconds } = await timed(tree, mutation.patches, [CONTROL, ...mutation.look])
  const verdict = verdictOn(mutation, trial)
  for (const test of trial.tests.filter(({ passed }) => !passed)) {
    console.log(`  ${nameOf(test)}\n    ${inOneLine(test.why ?? '')}`)
  }
  if (verdict.problem !== undefined) console.error(trial.output.slice(-4000))
  return { verdict, seconds }
}

async function timed(
  tree: Copy,
  patches: Mutation['patches'],
  looks: readonly Look[],
): Promise<{ trial: Awaited<ReturnType<typeof tryOut>>; seconds: number }> {
  using copy = copyTree(patches, tree.root)
  const started = performance.now()
  const trial = await tryOut(copy, looks, interruption.signal)
  return { trial, seconds: Math.round((performance.now() - started) / 1000) }
}

/** The head of an assertion's words, without the stack. */
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

/** What is not tried now stays as it was found last. */
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
  if (unknown.length > 0) throw new TypeError(`no mutation ${unknown.join(', ')}; there are ${known}`)
  return MUTATIONS.filter(({ name }) => names?.includes(name) ?? true)
}

function enginesOf(list: string | undefined): readonly string[] | undefined {
  const engines = list?.split(',')
  const unknown = engines?.filter((engine) => !ENGINES.includes(engine)) ?? []
  if (unknown.length > 0) throw new TypeError(`no engine ${unknown.join(', ')}; there are ${ENGINES.join(', ')}`)
  return engines
}
