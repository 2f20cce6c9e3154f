import Docker from 'dockerode'
import type { DockerEngine } from '../src/engines/docker/engine.ts'
import { createSandglass, dockerEngine, resolveForBench } from './subject.ts'
import { interleaved, pause, summarize, type Summary, timed } from './measure.ts'

/*
 * `node bench/containers.ts [rounds]`: what gVisor costs, beside runc on the same daemon (DOCKER_HOST), which has it as
 * the runtime `runsc`. BENCH_DOCKER_IMAGE names the image. Every series is interleaved with its counterpart.
 */
const SCRIPT = 'emit_result(1)'
const MiB = 1024 * 1024
const RUNTIMES = ['runc', 'runsc'] as const
const image = process.env['BENCH_DOCKER_IMAGE']
const rounds = Number(process.argv[2] ?? 200)

type Runtime = (typeof RUNTIMES)[number]
type Cells = Record<Runtime, string>

const engines: Record<Runtime, DockerEngine> = {
  runc: dockerEngine({ runtime: 'runc', ...(image === undefined ? {} : { image }) }),
  runsc: dockerEngine({ runtime: 'runsc', ...(image === undefined ? {} : { image }) }),
}
const docker = new Docker()

const rows: [string, Cells][] = [
  ...(await cold(Math.ceil(rounds / 10))),
  ...(await warm()),
  ...(await throughput()),
  ...(await idle()),
]
console.log(`| what | ${RUNTIMES.join(' | ')} |\n|---|---|---|`)
for (const [what, cells] of rows) console.log(`| ${what} | ${RUNTIMES.map((runtime) => cells[runtime]).join(' | ')} |`)
await Promise.all(Object.values(engines).map((engine) => engine.close()))

/** A container from nothing to the result of its first script. */
async function cold(count: number): Promise<[string, Cells][]> {
  const { spec, execute } = resolveForBench()
  const once = (runtime: Runtime) => async (): Promise<number> => {
    const start = performance.now()
    const sandbox = await engines[runtime].create(spec)
    await execute(sandbox, SCRIPT)
    const taken = performance.now() - start
    await sandbox.destroy()
    return taken
  }
  await interleaved(1, 0, { runc: once('runc'), runsc: once('runsc') })
  const found = await interleaved(count, 50, { runc: once('runc'), runsc: once('runsc') })
  return [[`cold sandbox to first result, p50 (n=${count})`, cells(found, 'p50')]]
}

async function warm(): Promise<[string, Cells][]> {
  await using plain = await createSandglass({ engine: engines.runc, maxUses: 1_000_000 })
  await using gvisor = await createSandglass({ engine: engines.runsc, maxUses: 1_000_000 })
  const series = { runc: () => timed(() => plain.run(SCRIPT)), runsc: () => timed(() => gvisor.run(SCRIPT)) }
  await interleaved(20, 1, series)
  const found = await interleaved(rounds, 5, series)
  return [
    [`warm run, 5 ms between runs, p50 (n=${rounds})`, cells(found, 'p50')],
    ['the same, p95', cells(found, 'p95')],
  ]
}

/** One sandbox, back to back. */
async function throughput(): Promise<[string, Cells][]> {
  const rates: Record<Runtime, number[]> = { runc: [], runsc: [] }
  const each = Math.ceil(rounds / 10)
  const opened = await Promise.all(
    RUNTIMES.map(async (runtime) => ({
      runtime,
      sg: await createSandglass({ engine: engines[runtime], poolSize: 1, maxOverflow: 0, maxUses: 1_000_000 }),
    })),
  )
  for (let block = 0; block < 6; block += 1) {
    for (const { runtime, sg } of opened) {
      const taken = await timed(async () => {
        for (let n = 0; n < each; n += 1) await sg.run(SCRIPT)
      })
      if (block > 0) rates[runtime].push((each * 1000) / taken)
    }
  }
  await Promise.all(opened.map(({ sg }) => sg.close()))
  const shown = (runtime: Runtime): string => `${summarize(rates[runtime]).p50.toFixed(0)} runs/s`
  return [['one sandbox, back to back', { runc: shown('runc'), runsc: shown('runsc') }]]
}

/** What the kernel charges the container's control group with, page cache left out. */
async function idle(): Promise<[string, Cells][]> {
  const { spec, execute } = resolveForBench()
  const shown: Partial<Cells> = {}
  for (const runtime of RUNTIMES) {
    const sandbox = await engines[runtime].create(spec)
    await execute(sandbox, SCRIPT)
    await pause(500)
    const stats = await docker.getContainer(sandbox.container.id).stats({ stream: false, 'one-shot': true })
    const { usage, stats: parts } = stats.memory_stats
    const cache = (parts as { inactive_file?: number; total_inactive_file?: number } | undefined) ?? {}
    const bytes = usage - (cache.total_inactive_file ?? cache.inactive_file ?? 0)
    shown[runtime] = `${(bytes / MiB).toFixed(1)} MiB, ${stats.pids_stats?.current ?? '?'} threads`
    await sandbox.destroy()
  }
  return [['idle warm sandbox: its control group', shown as Cells]]
}

function cells(found: Readonly<Record<string, Summary>>, key: 'p50' | 'p95'): Cells {
  const [base, other] = RUNTIMES.map((runtime) => found[runtime]?.[key] ?? Number.NaN) as [number, number]
  return { runc: `${base.toFixed(1)} ms`, runsc: `${other.toFixed(1)} ms = ${(other / base).toFixed(1)}x` }
}
