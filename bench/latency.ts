import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { SandboxEngine, Sandglass, SandglassOptions } from '../src/index.ts'
import { createSandglass, localEngine, resolveForBench } from './subject.ts'
import { startFloor } from './floor.ts'
import { measureInTurns, pause, summarize, type Summary, measureMs, WARM_UP } from './measure.ts'
import { ms, ratioRow, type Row } from './row.ts'

const run = promisify(execFile)
const SCRIPT = 'emit_result(1)'
/** Runs that follow each other before the floor has its turn. */
const IN_A_ROW = 10

/** Measures warm runs, runs back to back, runs in fresh and cold sandboxes, and `docker run`, each with its baseline. */
export async function latency(python: string, bwrap: string, rounds: number): Promise<Row[]> {
  return [
    ...(await warm(python, rounds)),
    ...(await fresh(Math.ceil(rounds / 20))),
    ...(await cold(python, bwrap, Math.ceil(rounds / 20))),
    ...(await docker(Math.ceil(rounds / 50))),
  ]
}

async function warm(python: string, rounds: number): Promise<Row[]> {
  const floor = startFloor(python)
  await using sg = await createSandglass()
  const once = (): Promise<number> => measureMs(() => sg.run(SCRIPT))
  const checked = (): Promise<number> => measureMs(() => sg.run(SCRIPT, { policy: 'standard' }))
  await measureInTurns(WARM_UP, 1, { once, checked, floor: () => floor.measure() })
  const paced = await measureInTurns(rounds, 5, { run: once, floor: () => floor.measure() })
  const inARow = await measureInTurns(rounds, 5, { run: once, checked, floor: () => floor.measure() }, IN_A_ROW)
  const backToBack: number[] = []
  const floors: number[] = []
  for (let block = 0; block < 10; block += 1) {
    for (let n = 0; n < rounds / 10; n += 1) backToBack.push(await once())
    for (let n = 0; n < rounds / 10; n += 1) floors.push(await floor.measure())
  }
  floor.close()
  const { run: of, floor: base } = paced as { run: Summary; floor: Summary }
  const row = inARow as { run: Summary; checked: Summary; floor: Summary }
  const b2b = summarize(backToBack)
  const b2bFloor = summarize(floors)
  return [
    {
      what: `floor: fork of a warm Python, one byte, wait (n=${base.n})`,
      figure: `p50 ${ms(base.p50)}, p95 ${ms(base.p95)}`,
    },
    ratioRow(`warm \`sg.run\`, 5 ms after a floor, p50 (n=${of.n})`, ms(of.p50), of.p50 / base.p50, 1.3, 'floor'),
    ratioRow('the same, p95', ms(of.p95), of.p95 / base.p95, 1.5, 'floor p95'),
    ratioRow(
      `warm \`sg.run\`, 5 ms after a run, p50 (n=${row.run.n})`,
      ms(row.run.p50),
      row.run.p50 / row.floor.p50,
      1.3,
      'floor after a floor',
    ),
    ratioRow('the same, p95', ms(row.run.p95), row.run.p95 / row.floor.p95, 1.5, 'floor p95'),
    ratioRow(`back to back, p50 (n=${b2b.n})`, ms(b2b.p50), b2b.p50 / b2bFloor.p50, 2, 'floor'),
    ratioRow("`policy: 'standard'`, p50", ms(row.checked.p50), row.checked.p50 / row.run.p50, 1.3, 'without a check'),
  ]
}

async function fresh(rounds: number): Promise<Row[]> {
  const { warm: base, fresh: first } = await freshBesideWarm(createSandglass, rounds)
  return [
    ratioRow(
      `first run in a fresh sandbox from the pool, p50 (n=${first.n})`,
      ms(first.p50),
      first.p50 / base.p50,
      2,
      'warm',
    ),
  ]
}

/** Measures the first run in a sandbox from the pool, in turn with runs in a reused sandbox. */
export async function freshBesideWarm(
  open: (options: SandglassOptions) => Promise<Sandglass>,
  rounds: number,
): Promise<{ warm: Summary; fresh: Summary }> {
  await using warmed = await open({ poolSize: 1, maxOverflow: 0, maxUses: 1_000_000 })
  await using single = await open({ poolSize: 1, maxOverflow: 0, maxUses: 1 })
  const settled = async (): Promise<void> => {
    while (single.stats().idle === 0) await pause(5)
    await pause(100)
  }
  await warmed.run(SCRIPT)
  const found = await measureInTurns(rounds, 5, {
    warm: async () => {
      await settled() // otherwise the start of the next sandbox of `single` would slow this run down
      return measureMs(() => warmed.run(SCRIPT))
    },
    fresh: async () => {
      await settled()
      return measureMs(() => single.run(SCRIPT))
    },
  })
  return found as { warm: Summary; fresh: Summary }
}

async function cold(python: string, bwrap: string, rounds: number): Promise<Row[]> {
  const engine = localEngine()
  await (await engine.create(resolveForBench().spec)).destroy()
  const found = await measureInTurns(rounds, 20, {
    cold: () => coldStart(engine),
    bwrap: () =>
      measureMs(() =>
        run(bwrap, [
          '--unshare-all',
          '--ro-bind',
          '/usr',
          '/usr',
          '--symlink',
          'usr/bin',
          '/bin',
          '--symlink',
          'usr/lib',
          '/lib',
          '--symlink',
          'usr/lib64',
          '/lib64',
          '--proc',
          '/proc',
          '--dev',
          '/dev',
          python,
          '-c',
          'pass',
        ]),
      ),
  })
  await engine.close()
  const { cold: ours, bwrap: plain } = found as { cold: Summary; bwrap: Summary }
  return [
    { what: `\`bwrap python3 -c pass\`, p50 (n=${plain.n})`, figure: ms(plain.p50) },
    ratioRow(
      `cold local sandbox to first result, p50 (n=${ours.n})`,
      ms(ours.p50),
      ours.p50 / plain.p50,
      6,
      'bwrap python3',
    ),
  ]
}

/** Measures the time to create a sandbox and get the result of its first script, without the destruction of the sandbox. */
export async function coldStart(engine: SandboxEngine): Promise<number> {
  const { spec, execute } = resolveForBench()
  const start = performance.now()
  const sandbox = await engine.create(spec)
  await execute(sandbox, SCRIPT)
  const taken = performance.now() - start
  await sandbox.destroy()
  return taken
}

/** Measures `docker run` in turn with warm runs, if `BENCH_DOCKER_IMAGE` names an image with Python. */
async function docker(rounds: number): Promise<Row[]> {
  const image = process.env['BENCH_DOCKER_IMAGE']
  if (image === undefined)
    return [{ what: '`docker run --rm IMAGE python3 -c pass`', figure: 'not measured: BENCH_DOCKER_IMAGE is not set' }]
  await using sg = await createSandglass()
  await sg.run(SCRIPT)
  const found = await measureInTurns(rounds, 5, {
    docker: () => measureMs(() => run('docker', ['run', '--rm', '--network', 'none', image, 'python3', '-c', 'pass'])),
    warm: () => measureMs(() => sg.run(SCRIPT)),
  })
  const { docker: container, warm: ours } = found as { docker: Summary; warm: Summary }
  const times = container.p50 / ours.p50
  return [
    {
      what: `\`docker run --rm IMAGE python3 -c pass\`, p50 (n=${container.n})`,
      figure: `${ms(container.p50)} = ${times.toFixed(0)}x a warm run`,
      bound: '>= 100x',
      met: times >= 100,
    },
  ]
}
