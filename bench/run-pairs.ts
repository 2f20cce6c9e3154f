import { execFileSync, fork } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { machine } from '../test/support/machine.ts'
import { pause } from './measure.ts'
import { ms, ratioRow, type Row, table } from './row.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const WARM_UP = 30
/** The maximum ratio for a change that must not slow a run. */
const MOST = 1.03

/** One version of Sandglass in its own process. */
interface Version {
  readonly name: string
  /** Runs the script, and returns the milliseconds of a run from call to result. */
  run(): Promise<number>
  close(): void
}

/**
 * Compares warm runs of this tree, and of other commits, with those of a commit before: `npm run bench:pairs -- BASE [COMMIT...]`.
 * Each version has a process and a pool of one sandbox of its own, and they take turns, so that a change of the machine's speed
 * affects all alike. `--rounds N` sets the turns of a series (default 600), `--times N` the series (default 3), `--block N` the
 * runs of a turn, back to back (default 1), `--script TEXT` the script. The commits use the packages of this tree.
 */
async function main(): Promise<void> {
  const { commits, rounds, times, block, script } = readArguments(process.argv.slice(2))
  const temporary = mkdtempSync(join(tmpdir(), 'sandglass-pairs-'))
  const versions: Version[] = []
  try {
    for (const commit of commits) versions.push(await start(commit, checkOut(commit, temporary), block, script))
    versions.push(await start('this tree', ROOT, block, script))
    await takeTurns(versions, WARM_UP)
    const rows: Row[] = []
    for (let time = 0; time < times; time += 1) rows.push(...compare(versions, await takeTurns(versions, rounds)))
    process.stdout.write(`Machine: ${machine()}\nVersions: Node ${process.version}\n\n${table(rows)}\n`)
  } finally {
    for (const version of versions) version.close()
    rmSync(temporary, { recursive: true })
  }
}

function readArguments(args: readonly string[]): {
  commits: string[]
  rounds: number
  times: number
  block: string
  script: string
} {
  const commits: string[] = []
  const given = new Map<string, string>()
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at] ?? ''
    if (word.startsWith('--')) given.set(word, args[(at += 1)] ?? '')
    else commits.push(word)
  }
  if (commits.length === 0) throw new Error('name the commit to compare with')
  return {
    commits,
    rounds: Number(given.get('--rounds') ?? 600),
    times: Number(given.get('--times') ?? 3),
    block: given.get('--block') ?? '1',
    script: given.get('--script') ?? 'emit_result(1)',
  }
}

function checkOut(commit: string, temporary: string): string {
  const directory = join(temporary, String(commit).replaceAll(/[^\w.-]/g, '_'))
  mkdirSync(directory)
  const archive = execFileSync('git', ['archive', commit, 'src', 'harness', 'data', 'package.json'], {
    cwd: ROOT,
    maxBuffer: 2 ** 30,
  })
  execFileSync('tar', ['-x', '-C', directory], { input: archive })
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
  return directory
}

async function start(name: string, directory: string, block: string, script: string): Promise<Version> {
  const program = fileURLToPath(new URL('run-pairs-process.ts', import.meta.url))
  const child = fork(program, [directory, block, script], { execArgv: ['--disable-warning=ExperimentalWarning'] })
  const next = (): Promise<number> =>
    new Promise((resolve, reject) => {
      const onExit = (): void => reject(new Error(`the process of ${name} has ended`))
      child.once('exit', onExit)
      child.once('message', (value: number) => {
        child.off('exit', onExit)
        resolve(value)
      })
    })
  await next()
  return {
    name,
    run: () => {
      child.send('run')
      return next()
    },
    close: () => child.disconnect(),
  }
}

/** Returns the milliseconds of each version's runs. Each turn begins with another version. */
async function takeTurns(versions: readonly Version[], rounds: number): Promise<number[][]> {
  const values: number[][] = versions.map(() => [])
  for (let round = 0; round < rounds; round += 1) {
    for (let turn = 0; turn < versions.length; turn += 1) {
      const at = (round + turn) % versions.length
      values[at]?.push((await versions[at]?.run()) ?? Number.NaN)
      await pause(8)
    }
  }
  return values
}

function compare(versions: readonly Version[], values: readonly number[][]): Row[] {
  const [base, ...others] = values.map(percentiles)
  if (base === undefined) return []
  return others.flatMap((other, at) => {
    const figure = (share: 'p10' | 'p50'): string => `${ms(other[share])} vs ${ms(base[share])}`
    const what = `\`sg.run\` of ${versions[at + 1]?.name} vs ${versions[0]?.name}, p50 (n=${values[0]?.length})`
    return [
      ratioRow(what, figure('p50'), other.p50 / base.p50, MOST, 'as long'),
      { what: 'the same, p10', figure: `${figure('p10')} = ${(other.p10 / base.p10).toFixed(2)}x as long` },
    ]
  })
}

function percentiles(values: readonly number[]): { p10: number; p50: number } {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? Number.NaN
  return { p10: at(0.1), p50: at(0.5) }
}

await main()
