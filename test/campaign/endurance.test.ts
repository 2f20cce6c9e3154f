import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { summarize } from '../../bench/measure.ts'
import { createSandglass, memoryStore, type SandglassOptions, type Session } from '../../src/index.ts'
import { listSandboxProcesses } from '../../src/engines/local/sandbox-processes.ts'
import { containers, processesIn } from '../support/containers.ts'
import { requireDockerEngine } from '../support/docker-engine.ts'
import { requireLocalEngine } from '../support/local-engine.ts'
import { heldMemory } from '../support/memory.ts'
import { processOf } from '../support/processes.ts'

const { skip } = await requireLocalEngine()
const docker = await requireDockerEngine()
const MiB = 1024 * 1024
/** A thousand take seconds. */
const CELLS = Number(process.env['SANDGLASS_TEST_CELLS'] ?? 1000)
/** In all, of which a session keeps the last 16 Mi, for tracebacks. */
const SOURCE_CHARACTERS = 40 * MiB
/** Tells the memory of the head of a session, in MiB, and the number and size of the sources of cells that it has. */
const LOOK = `import linecache
kept = [entry[0] for name, entry in linecache.cache.items() if name.startswith("<cell")]
rss = int(open("/proc/self/statm").read().split()[1]) * 4096 / 2 ** 20
[rss, len(kept), sum(kept)]`

test.skipIf(skip)(
  'a thousand tasks, eight at a time, leave the memory of the host flat',
  async () => {
    await using sg = await createSandglass({ engine: 'local', poolSize: 2 })
    const journal = memoryStore({ maxRuns: 10 })
    const script = 'emit_intermediate("list", list(range(1000)))\nemit_result("x" * 10000)'
    const many = async (count: number): Promise<number> => {
      let left = count
      const worker = async (): Promise<number> => {
        let solved = 0
        while ((left -= 1) >= 0) {
          const { success } = await sg.solve('Anything', { model: async () => script, journal })
          if (success) solved += 1
        }
        return solved
      }
      const done = await Promise.all(Array.from({ length: 8 }, worker))
      return done.reduce((sum, solved) => sum + solved, 0)
    }
    expect(await many(200)).toBe(200)
    const before = heldMemory()
    expect(await many(1000)).toBe(1000)
    // A task kept by mistake would be at least 20 KiB: its script's output alone.
    expect((heldMemory() - before) / MiB).toBeLessThan(4)
  },
  120_000,
)

/** An engine, and the processes of one of its sandboxes. */
interface Tested {
  readonly isSkipped: boolean
  readonly options: SandglassOptions & { readonly engine: 'local' | 'docker' }
  readonly processesOf: (sandboxId: string) => readonly number[]
}

const ENGINES: readonly Tested[] = [
  {
    isSkipped: skip,
    options: { engine: 'local' },
    processesOf: (sandboxId) =>
      listSandboxProcesses().flatMap(({ pid, sandbox }) => (sandbox === sandboxId ? pid : [])),
  },
  {
    isSkipped: docker.skip,
    options: { engine: 'docker', docker: { image: docker.image } },
    processesOf: (sandboxId) =>
      containers(undefined, sandboxId).flatMap(({ id }) => processesIn(id).map(({ pid }) => pid)),
  },
]

describe.each(ENGINES)('on $options.engine', ({ isSkipped, options, processesOf }) => {
  test.skipIf(isSkipped)(
    'a session of a thousand cells is as quick and as large at its end as in its middle',
    async () => {
      await using sg = await createSandglass({ ...options, poolSize: 0 })
      await using session = await sg.session()
      await session.run('n = 0')
      const first = await runCells(session, CELLS / 2)
      const middle = await holdingsOf(session, processesOf)
      const second = await runCells(session, CELLS / 2)
      const end = await holdingsOf(session, processesOf)
      console.log(JSON.stringify({ engine: options.engine, cells: CELLS, first, middle, second, end }))
      expect((await session.run('n')).value).toBe(CELLS)
      expect(end.sources).toBeLessThan(CELLS / 2)
      expect(end.characters).toBeLessThanOrEqual(16 * MiB)
      expect({ descriptors: end.descriptors, processes: end.processes }).toEqual({
        descriptors: middle.descriptors,
        processes: middle.processes,
      })
      // The first half fills the store of sources.
      expect(end.headMiB - middle.headMiB).toBeLessThan(4)
      expect(end.brokerMiB - middle.brokerMiB).toBeLessThan(2)
      expect(end.hostMiB - middle.hostMiB).toBeLessThan(4)
      // Other work on the machine comes and goes, and slows down the quickest cells least.
      expect(second.p10).toBeLessThan(3 * first.p10)
    },
    600_000,
  )
})

/** The milliseconds that a cell took: in all, and the median of each fifth. */
interface Taken {
  readonly p10: number
  readonly p50: number
  readonly fifths: number[]
}

/** Runs cells one directly after the other. */
async function runCells(session: Session, count: number): Promise<Taken> {
  const source = `n += 1 # ${'x'.repeat(SOURCE_CHARACTERS / CELLS)}\nn`
  const taken: number[] = []
  for (let n = 0; n < count; n += 1) {
    const start = performance.now()
    const { state, error } = await session.run(source)
    taken.push(performance.now() - start)
    if (state !== 'kept' || error !== null) throw new Error(`cell ${n}: ${state}, ${error}`)
  }
  const fifth = count / 5
  const fifths = Array.from({ length: 5 }, (_, n) => summarize(taken.slice(n * fifth, (n + 1) * fifth)).p50)
  const sorted = taken.toSorted((a, b) => a - b)
  return { p10: sorted[Math.floor(count / 10)] ?? Number.NaN, p50: summarize(taken).p50, fifths }
}

/** The holdings of a session in its head, its broker and its host. */
interface Holdings {
  readonly headMiB: number
  /** Cells whose sources it has, and their characters. */
  readonly sources: number
  readonly characters: number
  readonly brokerMiB: number
  readonly descriptors: number
  readonly processes: number
  readonly hostMiB: number
}

async function holdingsOf(session: Session, processesOf: Tested['processesOf']): Promise<Holdings> {
  const { value, sandbox } = await session.run(LOOK)
  // No copy is being made any more, and that of the last cell has ended.
  await session.variables()
  await expect.poll(() => processesOf(sandbox.id).filter(isCopy).length, { timeout: 5000 }).toBe(1)
  const [headMiB = Number.NaN, sources = Number.NaN, characters = Number.NaN] = value as number[]
  const processes = processesOf(sandbox.id)
  const broker = processes.find((pid) => processOf(pid)?.insidePid === 1)
  const pages = Number(readFileSync(`/proc/${broker}/statm`, 'utf8').split(' ')[1])
  return {
    headMiB,
    sources,
    characters,
    brokerMiB: (pages * 4096) / MiB,
    descriptors: readdirSync(`/proc/${broker}/fd`).length,
    processes: processes.length,
    hostMiB: heldMemory() / MiB,
  }
}

function isCopy(pid: number): boolean {
  return processOf(pid)?.name.startsWith('copy:') === true
}
