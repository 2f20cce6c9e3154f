import type { Sandglass } from '../src/index.ts'
import { createSandglass } from './subject.ts'
import { pause, summarize, measureMs } from './measure.ts'
import { ms, type Row } from './row.ts'

const MiB = 1024 * 1024

/** 1 GiB to stdout without a newline. */
export const ONE_LINE = 'import os\nb = b"x" * 1048576\nfor _ in range(1024): os.write(1, b)'

/** Measures floods of output, deadlines, streams of events and parallel runs. */
export async function endurance(): Promise<Row[]> {
  return [...(await flood()), ...(await deadline()), ...(await events()), ...(await throughput())]
}

async function flood(): Promise<Row[]> {
  await using sg = await createSandglass()
  const floods = {
    'in one line': ONE_LINE,
    'in many lines': 'import os\nb = (b"x" * 79 + b"\\n") * 13107\nfor _ in range(1024): os.write(1, b)',
  }
  const rows: Row[] = []
  for (const [how, script] of Object.entries(floods)) {
    await sg.run(script) // warm-up: compiles the code and fills the memory pools
    const alone = await neighbour(sg, undefined)
    const flooding = watchedFlood(sg, script, 5)
    const beside = await neighbour(sg, flooding)
    const { longestMs, statuses, growthMiB } = await flooding
    rows.push(
      {
        what: `1 GiB to stdout ${how}, five times at once: end of the run (${statuses})`,
        figure: ms(longestMs),
        bound: '<= 2 s',
        met: longestMs <= 2000,
      },
      {
        what: `the same: growth of the host's memory`,
        figure: `${growthMiB.toFixed(1)} MiB`,
        bound: '<= 32 MiB',
        met: growthMiB <= 32,
      },
      {
        what: `the same: a neighbour's runs meanwhile, p50`,
        figure: `${ms(beside)} = ${(beside / alone).toFixed(2)}x alone`,
        bound: '<= 2x',
        met: beside <= alone * 2,
      },
    )
  }
  return rows
}

/** The effect of floods on their host. */
export interface Flood {
  readonly longestMs: number
  readonly statuses: string
  readonly growthMiB: number
}

/** Runs the script `atOnce` times in parallel, and measures the growth of the host's memory. */
export async function watchedFlood(sg: Sandglass, script: string, atOnce: number): Promise<Flood> {
  const before = process.memoryUsage.rss()
  let highest = before
  const watch = setInterval(() => (highest = Math.max(highest, process.memoryUsage.rss())), 1)
  const results = await Promise.all(Array.from({ length: atOnce }, () => sg.run(script)))
  clearInterval(watch)
  return {
    longestMs: Math.max(...results.map((result) => result.durationMs)),
    statuses: [...new Set(results.map((result) => result.status))].join(', '),
    growthMiB: (highest - before) / MiB,
  }
}

async function neighbour(sg: Sandglass, until: Promise<unknown> | undefined): Promise<number> {
  const taken: number[] = []
  let over = until === undefined
  void until?.then(() => (over = true))
  while (taken.length < 30 || (!over && taken.length < 300)) taken.push(await measureMs(() => sg.run('emit_result(1)')))
  return summarize(taken).p50
}

async function deadline(): Promise<Row[]> {
  await using sg = await createSandglass({ limits: { executionTimeoutSec: 0.5 } })
  const inC: number[] = []
  const inPython: number[] = []
  for (let n = 0; n < 10; n += 1) {
    inC.push((await sg.run('sum(range(10**12))')).durationMs - 500)
    inPython.push((await sg.run('while True: pass')).durationMs - 500)
  }
  const c = summarize(inC)
  const python = summarize(inPython)
  return [
    {
      what: 'from the deadline of a Python loop to the settled result (n=10)',
      figure: `p50 ${ms(python.p50)}, max ${ms(python.max)}`,
    },
    {
      what: 'from the deadline of a C loop to the settled result, 300 ms grace included (n=10)',
      figure: `p50 ${ms(c.p50)}, max ${ms(c.max)}`,
    },
  ]
}

async function events(): Promise<Row[]> {
  await using sg = await createSandglass({ limits: { maxOutputBytes: 64 * MiB } })
  const count = 20_000
  let expected = 0
  let inOrder = true
  const taken = await measureMs(async () => {
    for await (const event of sg.stream(`for i in range(${count}): emit_intermediate("n", i)`)) {
      if (event.type !== 'intermediate') continue
      inOrder &&= event.data === expected
      expected += 1
    }
  })
  const rate = Math.round(count / (taken / 1000))
  return [
    {
      what: `${count} events of one script as an async iterable`,
      figure: `${rate} events/s`,
      bound: 'all, in order',
      met: inOrder && expected === count,
    },
  ]
}

async function throughput(): Promise<Row[]> {
  const rows: Row[] = []
  for (const atOnce of [1, 2, 4, 8]) {
    await using sg = await createSandglass({ poolSize: atOnce, maxOverflow: 0, maxUses: 1_000_000 })
    await Promise.all(Array.from({ length: atOnce }, () => sg.run('emit_result(1)')))
    while (sg.stats().idle < atOnce) await pause(10)
    const total = 400
    let left = total
    const worker = async (): Promise<void> => {
      while (left > 0) {
        left -= 1
        await sg.run('emit_result(1)')
      }
    }
    const taken = await measureMs(() => Promise.all(Array.from({ length: atOnce }, worker)))
    rows.push({
      what: `${atOnce} ${atOnce === 1 ? 'run' : 'runs'} at once, back to back`,
      figure: `${Math.round(total / (taken / 1000))} runs/s`,
    })
  }
  return rows
}
