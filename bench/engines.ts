import Docker from 'dockerode'
import type { Sandbox, SandboxEngine, Sandglass, SandglassOptions } from '../src/index.ts'
import type { DockerSandbox } from '../src/engines/docker/index.ts'
import { ONE_LINE, watchedFlood } from './endurance.ts'
import { coldStart, freshBesideWarm } from './latency.ts'
import { channelEcho } from './channel-echo.ts'
import { measureInTurns, pause, summarize, measureMs } from './measure.ts'
import { ms, type Row } from './row.ts'
import { createSandglass, dockerEngine, localEngine, resolveForBench } from './subject.ts'

const MiB = 1024 * 1024
const SCRIPT = 'emit_result(1)'
/** Measurements of one engine before those of the next. */
const IN_A_ROW = 10

/** A column of the table, for one engine. */
interface Column {
  readonly title: string
  readonly make: () => SandboxEngine
}

/**
 * Measures local, docker (set by DOCKER_HOST and BENCH_DOCKER_IMAGE) and docker with gVisor (runtime `runsc`), as far
 * as this machine has them. Warm and cold runs are measured in turns, so that a change of the machine's speed affects
 * all engines alike.
 */
export async function engines(rounds: number): Promise<{ titles: string[]; rows: Row[] }> {
  const columns = await usableColumns()
  const few = Math.max(5, Math.ceil(rounds / 20))
  const rows = [
    ...(await warm(columns, rounds)),
    await fresh(columns, few),
    await cold(columns, few),
    ...(await flood(columns)),
    await idle(columns),
  ]
  return { titles: columns.map(({ title }) => title), rows }
}

/** Returns the columns of the usable engines. Writes to stderr why the others are missing. */
async function usableColumns(): Promise<Column[]> {
  const image = process.env['BENCH_DOCKER_IMAGE']
  const docker = image === undefined ? {} : { image }
  const wanted: Column[] = [
    { title: 'local', make: () => localEngine() },
    { title: 'docker', make: () => dockerEngine(docker) },
    { title: 'docker, gVisor', make: () => dockerEngine({ ...docker, runtime: 'runsc' }) },
  ]
  const usable: Column[] = []
  for (const column of wanted) {
    const engine = column.make()
    const report = await engine.report()
    await engine.close()
    if (report.usable) usable.push(column)
    else process.stderr.write(`no column ${column.title}: ${report.reasons.map(({ message }) => message).join('; ')}\n`)
  }
  return usable
}

/** Opens a Sandglass on a new engine. Closing it also closes the engine. */
async function open(column: Column, options: SandglassOptions): Promise<Sandglass> {
  const engine = column.make()
  const sg = await createSandglass({ ...options, engine })
  const close = async (): Promise<void> => {
    await sg.close()
    await engine.close()
  }
  return { ...sg, close, [Symbol.asyncDispose]: close }
}

async function warm(columns: readonly Column[], rounds: number): Promise<Row[]> {
  const running = await Promise.all(
    columns.map(async (column) => ({ title: column.title, sg: await open(column, { maxUses: 1_000_000 }) })),
  )
  const series = (each: number): Record<string, () => Promise<number>> =>
    Object.fromEntries(running.map(({ title, sg }) => [title, () => typical(sg, each)]))
  await measureInTurns(20, 1, series(1))
  const paced = await measureInTurns(rounds, 5, series(1), IN_A_ROW)
  const backToBack = Object.values(await measureInTurns(10, 5, series(Math.ceil(rounds / 10))))
  await Promise.all(running.map(({ sg }) => sg.close()))
  const local = paced['local']
  const docker = paced['docker']
  const times = (key: 'p50' | 'p95'): string[] =>
    Object.entries(paced).map(([title, summary]) =>
      local === undefined || title === 'local'
        ? ms(summary[key])
        : `${ms(summary[key])} = ${(summary[key] / local[key]).toFixed(2)}x`,
    )
  return [
    {
      what: `warm \`sg.run\`, 5 ms between runs, p50 (n=${rounds})`,
      figure: times('p50'),
      bound: 'docker <= 1.15x local',
      ...(local !== undefined && docker !== undefined && { met: docker.p50 <= 1.15 * local.p50 }),
    },
    { what: 'the same, p95', figure: times('p95') },
    { what: 'echo of the channel, 5 ms between echoes, p50', figure: await echoes(columns, rounds) },
    { what: 'back to back, p50', figure: backToBack.map(({ p50 }) => ms(p50)) },
  ]
}

async function echoes(columns: readonly Column[], rounds: number): Promise<string[]> {
  // A channel that waits for the echo does not keep this process alive.
  const awake = setInterval(() => {}, 60_000)
  const { spec } = resolveForBench()
  const engines = columns.map(({ make }) => make())
  const sandboxes = await Promise.all(engines.map((engine) => engine.create(spec)))
  const series = Object.fromEntries(sandboxes.map((sandbox, at) => [at, () => channelEcho(sandbox)]))
  await measureInTurns(20, 1, series)
  const found = Object.values(await measureInTurns(rounds, 5, series, IN_A_ROW))
  await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()))
  await Promise.all(engines.map((engine) => engine.close()))
  clearInterval(awake)
  return found.map(({ p50 }) => ms(p50))
}

async function typical(sg: Sandglass, count: number): Promise<number> {
  const taken: number[] = []
  for (let n = 0; n < count; n += 1) taken.push(await measureMs(() => sg.run(SCRIPT)))
  return summarize(taken).p50
}

async function fresh(columns: readonly Column[], rounds: number): Promise<Row> {
  const found: { first: number; ratio: number }[] = []
  for (const column of columns) {
    const measured = await freshBesideWarm((options) => open(column, options), rounds)
    found.push({ first: measured.fresh.p50, ratio: measured.fresh.p50 / measured.warm.p50 })
  }
  return {
    what: `first run in a fresh sandbox from the pool, p50 (n=${rounds})`,
    figure: found.map(({ first, ratio }) => `${ms(first)} = ${ratio.toFixed(2)}x warm`),
    bound: '<= 2x warm',
    met: found.every(({ ratio }) => ratio <= 2),
  }
}

async function cold(columns: readonly Column[], rounds: number): Promise<Row> {
  const made = columns.map(({ title, make }) => ({ title, engine: make() }))
  const series = Object.fromEntries(made.map(({ title, engine }) => [title, () => coldStart(engine)]))
  await measureInTurns(1, 0, series)
  const found = Object.values(await measureInTurns(rounds, 50, series))
  await Promise.all(made.map(({ engine }) => engine.close()))
  return { what: `cold sandbox to first result, p50 (n=${rounds})`, figure: found.map(({ p50 }) => ms(p50)) }
}

async function flood(columns: readonly Column[]): Promise<Row[]> {
  const found: Awaited<ReturnType<typeof watchedFlood>>[] = []
  for (const column of columns) {
    await using sg = await open(column, {})
    await sg.run(ONE_LINE) // warm-up: compiles the code and fills the memory pools
    found.push(await watchedFlood(sg, ONE_LINE, 1))
  }
  return [
    {
      what: '1 GiB to stdout in one line: end of the run',
      figure: found.map(({ longestMs, statuses }) => `${ms(longestMs)} (${statuses})`),
      bound: '<= 2 s',
      met: found.every(({ longestMs }) => longestMs <= 2000),
    },
    {
      what: "the same: growth of the host's memory",
      figure: found.map(({ growthMiB }) => `${growthMiB.toFixed(1)} MiB`),
      bound: '<= 32 MiB',
      met: found.every(({ growthMiB }) => growthMiB <= 32),
    },
  ]
}

async function idle(columns: readonly Column[]): Promise<Row> {
  const { spec, execute } = resolveForBench()
  const figure: string[] = []
  for (const column of columns) {
    const engine = column.make()
    const sandbox = await engine.create(spec)
    await execute(sandbox, SCRIPT)
    await pause(500)
    figure.push(isContainer(sandbox) ? await controlGroup(sandbox.container.id) : 'PSS above')
    await sandbox.destroy()
    await engine.close()
  }
  return { what: "idle warm sandbox: its container's control group", figure }
}

function isContainer(sandbox: Sandbox): sandbox is DockerSandbox {
  return 'container' in sandbox
}

/** The memory that the kernel charges to a container, without the page cache. */
async function controlGroup(id: string): Promise<string> {
  const stats = await new Docker().getContainer(id).stats({ stream: false, 'one-shot': true })
  const { usage, stats: parts } = stats.memory_stats
  const cache = (parts as { inactive_file?: number; total_inactive_file?: number } | undefined) ?? {}
  const bytes = usage - (cache.total_inactive_file ?? cache.inactive_file ?? 0)
  return `${(bytes / MiB).toFixed(1)} MiB, ${stats.pids_stats?.current ?? '?'} threads`
}
