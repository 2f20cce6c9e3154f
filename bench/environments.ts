import { createHook } from 'node:async_hooks'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { indexSettings } from '../src/environments/index-settings.ts'
import { findUv } from '../src/environments/uv.ts'
import { startFloor } from './floor.ts'
import { measureInTurns, measureMs, summarize } from './measure.ts'
import { ms, ratioRow, type Row } from './row.ts'
import { createSandglass } from './subject.ts'

const PACKAGES = ['pandas', 'matplotlib']
const IMPORT = 'import pandas\nemit_result(len(pandas.DataFrame({"a": [1]})))'
/** Entries that stay when the cache is emptied: the program uv, its cache of downloads, and the record of the sandboxes' Python. */
const KEPT = new Set(['bin', 'uv', 'targets'])
const SETS = 16
const ROUNDS = 8

/** Measures packages on demand: the first installation, a start with cached packages, runs, and many environments in turn. */
export async function environments(): Promise<Row[]> {
  const above = mkdtempSync(join(tmpdir(), 'sandglass-bench-'))
  chmodSync(above, 0o755)
  const cacheDir = join(above, 'cache')
  try {
    const first = await installing(cacheDir, join(above, 'uv-alone'))
    return [...first, ...(await starting(cacheDir)), ...(await running(cacheDir)), ...(await inTurn(cacheDir))]
  } finally {
    rmSync(above, { recursive: true, force: true })
  }
}

/**
 * Compares an installation by Sandglass with the two commands of uv that it consists of, from the same directory of wheels and with
 * the same cache. An index on the network would dominate the time of both.
 */
async function installing(cacheDir: string, work: string): Promise<Row[]> {
  const prepare = async (given: { readonly wheels?: string; readonly offline?: boolean }): Promise<number> => {
    await using sg = await createSandglass({ engine: 'local', poolSize: 0, environments: { cacheDir, ...given } })
    const { ms: taken } = await sg.prepare(PACKAGES)
    return taken
  }
  const cold = await prepare({})
  const wheels = await downloadWheels(cacheDir, `${work}-wheels`)
  const uv = await findUv({ cacheDir, offline: true, index: indexSettings({}) })
  // Moved, not removed, before a round: an ext4 without a journal does not reuse an inode for minutes, and checks each one that was
  // freed near a new directory.
  const aside = `${work}-aside`
  mkdirSync(aside)
  let moved = 0
  const moveAside = (path: string): void => renameSync(path, join(aside, String((moved += 1))))
  const empty = (): void => {
    for (const name of readdirSync(cacheDir)) if (!KEPT.has(name)) moveAside(join(cacheDir, name))
  }
  const shared = [
    '--python',
    '/usr/bin/python3',
    '--only-binary',
    ':all:',
    '--cache-dir',
    join(cacheDir, 'uv'),
    '--quiet',
    // The same wheels from the same place, and no index: the state of the cache is the same for both.
    '--offline',
    '--find-links',
    wheels,
  ]
  const alone = async (): Promise<number> => {
    if (existsSync(work)) moveAside(work)
    mkdirSync(work)
    writeFileSync(join(work, 'requirements.in'), PACKAGES.join('\n'))
    return measureMs(async () => {
      const lock = ['pip', 'compile', '--format', 'pylock.toml', '-o', 'pylock.toml', 'requirements.in', ...shared]
      execFileSync(uv, lock, { cwd: work, stdio: ['ignore', 'ignore', 'inherit'] })
      const sync = ['pip', 'sync', '--preview-features', 'pylock', '--target', 'packages', 'pylock.toml', ...shared]
      execFileSync(uv, sync, { cwd: work, stdio: ['ignore', 'ignore', 'inherit'] })
      return Promise.resolve()
    })
  }
  const took = await measureInTurns(ROUNDS, 0, {
    ours: () => {
      empty()
      return prepare({ wheels, offline: true })
    },
    alone,
  })
  const [ours, uvs] = [took['ours']?.p50 ?? 0, took['alone']?.p50 ?? 0]
  return [
    { what: `${PACKAGES.join(' and ')}: installed for the first time, nothing downloaded`, figure: ms(cold) },
    ratioRow(
      `the same from a directory of wheels, p50 (n=${ROUNDS})`,
      `${ms(ours)} vs ${ms(uvs)}`,
      ours / uvs,
      1.3,
      'the two commands of uv',
    ),
  ]
}

/** Fetches the wheels of the installed environment. */
async function downloadWheels(cacheDir: string, directory: string): Promise<string> {
  mkdirSync(directory)
  const [lock = ''] = globSync(join(cacheDir, 'environments', '*', 'pylock.toml'))
  for (const [, url = ''] of readFileSync(lock, 'utf8').matchAll(/url = "([^"]+\.whl)"/g)) {
    const answer = await fetch(url)
    writeFileSync(join(directory, decodeURIComponent(basename(url))), await answer.bytes())
  }
  return directory
}

async function starting(cacheDir: string): Promise<Row[]> {
  const program = fileURLToPath(new URL('environment-start.ts', import.meta.url))
  const start = (dependencies: readonly string[]): Promise<number> =>
    Promise.resolve(Number(execFileSync(process.execPath, [program, cacheDir, ...dependencies], { encoding: 'utf8' })))
  const took = await measureInTurns(15, 0, { without: () => start([]), with: () => start(PACKAGES) })
  const [without, withPackages] = [took['without']?.p50 ?? 0, took['with']?.p50 ?? 0]
  const more = withPackages - without
  return [
    {
      what: '`createSandglass` in a fresh process with packages of the cache, p50 (n=15)',
      figure: `${ms(withPackages)} vs ${ms(without)} without = ${ms(more)} more`,
      bound: '<= 15 ms more',
      met: more <= 15,
    },
  ]
}

/** Compares a script that imports a preloaded pandas with a script without packages. */
async function running(cacheDir: string): Promise<Row[]> {
  const shared = {
    engine: 'local',
    poolSize: 1,
    maxOverflow: 0,
    maxUses: 1_000_000,
    environments: { cacheDir },
  } as const
  await using plain = await createSandglass(shared)
  await using packed = await createSandglass({ ...shared, dependencies: PACKAGES })
  await packed.prepare(PACKAGES) // waits for the byte code
  const first = await measureMs(() => packed.run(IMPORT))
  let started = 0
  const hook = createHook({ init: (_id, type) => void (type === 'PROCESSWRAP' && (started += 1)) }).enable()
  await packed.run(IMPORT)
  hook.disable()
  await plain.run('emit_result(1)')
  const ahead = 'import sys\nfound = "pandas" in sys.modules\nimport pandas\nemit_result(found)'
  let tries = 0
  while ((await packed.run(ahead)).finalData !== true)
    if ((tries += 1) > 500) throw new Error('pandas is not preloaded')
  const [directory = ''] = globSync(join(cacheDir, 'environments', '*', 'packages-*'))
  const [floor, packedFloor] = [startFloor('/usr/bin/python3'), startFloor('/usr/bin/python3', [directory, 'pandas'])]
  const took = await measureInTurns(200, 20, {
    without: () => measureMs(() => plain.run('emit_result(1)')),
    with: () => measureMs(() => packed.run('import pandas\nemit_result(1)')),
    fork: () => floor.measure(),
    packedFork: () => packedFloor.measure(),
  })
  floor.close()
  packedFloor.close()
  const [without, withPandas] = [took['without']?.p50 ?? 0, took['with']?.p50 ?? 0]
  const [fork, packedFork] = [took['fork']?.p50 ?? 0, took['packedFork']?.p50 ?? 0]
  return [
    { what: 'the first run that imports pandas', figure: ms(first) },
    {
      what: 'processes that the host starts for the second run',
      figure: String(started),
      bound: '0',
      met: started === 0,
    },
    ratioRow(
      '`import pandas` loaded ahead, p50 (n=200)',
      `${ms(withPandas)} vs ${ms(without)}`,
      withPandas / without,
      1.1,
      'a run without packages',
    ),
    {
      what: 'floor of the row above: fork of a Python with pandas loaded, and without, p50 (n=200)',
      figure: `${ms(packedFork)} vs ${ms(fork)}`,
    },
  ]
}

async function inTurn(cacheDir: string): Promise<Row[]> {
  const extras =
    'six idna certifi attrs packaging pytz tzdata urllib3 click toml colorama wheel zipp decorator wcwidth pluggy'
  const sets = extras
    .split(' ')
    .slice(0, SETS)
    .map((extra) => ['pandas', extra])
  await using sg = await createSandglass({ engine: 'local', poolSize: 1, environments: { cacheDir } })
  for (const dependencies of sets) await sg.prepare(dependencies)
  const rounds: number[] = []
  const idle: number[] = []
  for (let round = 0; round < 6; round += 1) {
    const took: number[] = []
    for (const dependencies of sets) {
      took.push(await measureMs(() => sg.run(IMPORT, { dependencies })))
      idle.push(sg.stats().idleBytes)
    }
    rounds.push(summarize(took).p50)
  }
  const MiB = 2 ** 20
  return [
    {
      what: `${SETS} environments with pandas in turn: p50 of a run in the first round, and in the last`,
      figure: `${ms(rounds[0] ?? 0)}, ${ms(rounds.at(-1) ?? 0)}`,
    },
    {
      what: 'the same: highest memory of all idle sandboxes (`maxIdleBytes` is 1 GiB)',
      figure: `${(Math.max(...idle) / MiB).toFixed(0)} MiB`,
      bound: '<= 1024 MiB',
      met: Math.max(...idle) <= 1024 * MiB,
    },
  ]
}
