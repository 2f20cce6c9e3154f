import type { SandboxEngine, Sandglass, SandglassOptions } from '../src/index.ts'
import { createSandglass, dockerEngine, localEngine } from './subject.ts'
import { interleaved, pause, summarize, timed } from './measure.ts'
import { ms } from './row.ts'

const MiB = 1024 * 1024
const SCRIPT = 'emit_result(1)'
const FLOOD = 'import os\nb = b"x" * 1048576\nfor _ in range(1024): os.write(1, b)'

/** An engine with a column of its own in the table. */
export interface Column {
  readonly title: string
  readonly make: () => SandboxEngine
}

/** The engines that this machine has; the reason of each that it has not goes to stderr. */
export async function columns(): Promise<Column[]> {
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

/** One table: a row for each figure, a column for each engine. Every series of a row is interleaved with the others. */
export async function engines(rounds: number): Promise<string> {
  const found = await columns()
  const rows = [
    ...(await warm(found, rounds)),
    await fresh(found, Math.max(5, Math.ceil(rounds / 20))),
    ...(await flood(found)),
  ]
  const head = ['what', ...found.map(({ title }) => title), 'bound']
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

/** A Sandglass on an engine of its own, both ended together. */
async function open(column: Column, options: SandglassOptions): Promise<Sandglass> {
  const engine = column.make()
  const sg = await createSandglass({ ...options, engine })
  return {
    ...sg,
    async close() {
      await sg.close()
      await engine.close()
    },
  }
}

async function warm(found: readonly Column[], rounds: number): Promise<string[][]> {
  const running = await Promise.all(
    found.map(async (column) => ({ title: column.title, sg: await open(column, { maxUses: 1_000_000 }) })),
  )
  const series = (each: number): Record<string, () => Promise<number>> =>
    Object.fromEntries(running.map(({ title, sg }) => [title, () => typical(sg, each)]))
  await interleaved(20, 1, series(1))
  const paced = Object.values(await interleaved(rounds, 5, series(1)))
  const backToBack = Object.values(await interleaved(10, 5, series(Math.ceil(rounds / 10))))
  await Promise.all(running.map(({ sg }) => sg.close()))
  const cells = (key: 'p50' | 'p95'): string[] => {
    const [base = Number.NaN, ...others] = paced.map((summary) => summary[key])
    return [ms(base), ...others.map((value) => `${ms(value)} = ${(value / base).toFixed(2)}x`)]
  }
  return [
    [`warm \`sg.run\`, 5 ms between runs, p50 (n=${rounds})`, ...cells('p50'), 'docker <= 1.5x'],
    ['the same, p95', ...cells('p95'), 'reported'],
    ['back to back, p50', ...backToBack.map(({ p50 }) => ms(p50)), 'reported'],
  ]
}

async function typical(sg: Sandglass, count: number): Promise<number> {
  const taken: number[] = []
  for (let n = 0; n < count; n += 1) taken.push(await timed(() => sg.run(SCRIPT)))
  return summarize(taken).p50
}

async function fresh(found: readonly Column[], rounds: number): Promise<string[]> {
  const cells: string[] = []
  for (const column of found) {
    const warmed = await open(column, { poolSize: 1, maxOverflow: 0, maxUses: 1_000_000 })
    const single = await open(column, { poolSize: 1, maxOverflow: 0, maxUses: 1 })
    const settled = async (): Promise<void> => {
      while (single.stats().idle === 0) await pause(5)
      await pause(100)
    }
    await warmed.run(SCRIPT)
    const measured = await interleaved(rounds, 5, {
      warm: async () => {
        await settled() // or the start of the other's next sandbox would be measured
        return timed(() => warmed.run(SCRIPT))
      },
      fresh: async () => {
        await settled()
        return timed(() => single.run(SCRIPT))
      },
    })
    const [base = Number.NaN, first = Number.NaN] = Object.values(measured).map(({ p50 }) => p50)
    cells.push(`${ms(first)} = ${(first / base).toFixed(2)}x warm`)
    await Promise.all([warmed.close(), single.close()])
  }
  return [`first run in a fresh sandbox from the pool, p50 (n=${rounds})`, ...cells, '<= 2x warm']
}

async function flood(found: readonly Column[]): Promise<string[][]> {
  const ends: string[] = []
  const growths: string[] = []
  for (const column of found) {
    const sg = await open(column, {})
    await sg.run(FLOOD) // once, so that the code is compiled and the pools of memory are filled
    const before = process.memoryUsage.rss()
    let highest = before
    const watch = setInterval(() => (highest = Math.max(highest, process.memoryUsage.rss())), 1)
    const result = await sg.run(FLOOD)
    clearInterval(watch)
    ends.push(`${ms(result.durationMs)} (${result.status})`)
    growths.push(`${((highest - before) / MiB).toFixed(1)} MiB`)
    await sg.close()
  }
  return [
    ['1 GiB to stdout in one line: end of the run', ...ends, '<= 2 s'],
    ["the same: growth of the host's memory", ...growths, '<= 32 MiB'],
  ]
}
