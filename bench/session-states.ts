import type { Sandglass, Session } from '../src/index.ts'
import { harnessProcesses, pss } from './idle-memory.ts'
import { measureMs, pause, summarize } from './measure.ts'
import { ms, type Row } from './row.ts'

const FEW = 20
const BRANCH_ROUNDS = 5
/** Enough memory for a checkpoint and everything after it. */
const SETTLED_MS = 50

/** A state of a session: the code that creates it, and a cell that writes to all of it. */
interface Live {
  readonly name: string
  readonly made: string
  readonly touch: string
}

export const LIVE: Readonly<Record<'nothing' | 'bytearray' | 'numpy', Live>> = {
  nothing: { name: 'nothing', made: 'x = 1', touch: 'x = 2' },
  bytearray: {
    name: 'a bytearray of 100 MB',
    made: 'x = bytearray(b"a" * (100 << 20))',
    touch: 'x[::4096] = b"b" * 25600',
  },
  numpy: { name: '100 MB of numpy', made: 'import numpy; x = numpy.ones(100 << 17)', touch: 'x += 1' },
}

/** Measures checkpoints, rollbacks and branches with this live data. */
export async function states(sg: Sandglass, { name, made }: Live): Promise<Row[]> {
  await using session = await sg.session()
  await expectDone(session, made)
  const cell = (): Promise<number> => measureMs(() => session.run('1'))
  const apart = await series(cell, SETTLED_MS)
  const backToBack = await series(cell, 0)
  const both = (): Promise<number> =>
    measureMs(async () => {
      await session.run('import os; os._exit(1)')
      await session.run('1')
    })
  const rollback = await series(both, SETTLED_MS)
  const branched: number[] = []
  const used: number[] = []
  for (let round = 0; round < BRANCH_ROUNDS; round += 1) {
    await pause(SETTLED_MS)
    const start = performance.now()
    const branches = await session.branch(4)
    branched.push(performance.now() - start)
    await Promise.all(branches.map((branch) => branch.run('1')))
    used.push(performance.now() - start)
    for (const branch of branches) await branch.close()
  }
  const checkpoint = backToBack - apart
  return [
    { what: `cell ${SETTLED_MS} ms after a cell, ${name} live, p50 (n=${FEW})`, figure: ms(apart) },
    boundRow(`checkpoint: what a cell directly after a cell takes longer, ${name} live, p50`, checkpoint, 5),
    boundRow(`cell that crashes and the next one, ${name} live, p50 (n=${FEW})`, rollback, 20),
    boundRow(`4 branches, ${name} live, p50 (n=${BRANCH_ROUNDS})`, summarize(branched).p50, 40),
    { what: `4 branches and a cell in each, ${name} live, p50 (n=${BRANCH_ROUNDS})`, figure: ms(summarize(used).p50) },
  ]
}

/** Measures a cell that writes to live data whose memory a checkpoint shares until then. */
export async function touched(sg: Sandglass, { name, made, touch }: Live): Promise<Row[]> {
  const figures: string[] = []
  for (const checkpoints of ['auto', 'off'] as const) {
    await using session = await sg.session({ checkpoints })
    await expectDone(session, made)
    figures.push(ms(await series(() => measureMs(() => session.run(touch)), 4 * SETTLED_MS)))
  }
  const [withCheckpoint, without] = figures
  return [
    {
      what: `cell that writes to ${name}, p50 (n=${FEW})`,
      figure: `${withCheckpoint} with a checkpoint, ${without} with \`checkpoints: 'off'\``,
    },
  ]
}

/** The memory of an open session between two cells. */
export async function idleSession(sg: Sandglass): Promise<Row[]> {
  const before = new Set(harnessProcesses())
  await using session = await sg.session()
  await session.run('1')
  await pause(SETTLED_MS * 4)
  const total = harnessProcesses()
    .filter((pid) => !before.has(pid))
    .reduce((sum, pid) => sum + pss(pid), 0)
  const what = 'idle session: PSS of its processes, with broker, zygote and the process for the next activity'
  return [{ what, figure: `${(total / 1024).toFixed(1)} MiB` }]
}

/** Charts of matplotlib in a session that has imported it. */
export async function charts(sg: Sandglass): Promise<Row[]> {
  const firsts: number[] = []
  const seconds: number[] = []
  const imports: number[] = []
  for (let round = 0; round < BRANCH_ROUNDS; round += 1) {
    await using session = await sg.session()
    imports.push(await measureMs(() => expectDone(session, 'import matplotlib.pyplot as plt')))
    await pause(4 * SETTLED_MS)
    for (const list of [firsts, seconds]) {
      list.push(await measureMs(() => expectPicture(session)))
      await pause(4 * SETTLED_MS)
    }
  }
  const n = `p50 (n=${BRANCH_ROUNDS})`
  return [
    { what: `cell that imports \`matplotlib.pyplot\`, ${n}`, figure: ms(summarize(imports).p50) },
    boundRow(`first chart after it, ${n}`, summarize(firsts).p50, 400),
    boundRow(`second chart, ${n}`, summarize(seconds).p50, 100),
  ]
}

async function expectDone(session: Session, cell: string): Promise<void> {
  const { status, error } = await session.run(cell)
  if (error !== null) throw new Error(`${status}: ${error}`)
}

async function expectPicture(session: Session): Promise<void> {
  const { displays, status, error } = await session.run('plt.plot([1, 2, 3]); None')
  if (!displays.some(({ data }) => data['image/png'] !== undefined)) throw new Error(`no picture: ${status}: ${error}`)
}

async function series(measure: () => Promise<number>, pauseMs: number): Promise<number> {
  const taken: number[] = []
  for (let round = 0; round < FEW; round += 1) {
    if (pauseMs > 0) await pause(pauseMs)
    taken.push(await measure())
  }
  return summarize(taken).p50
}

function boundRow(what: string, figure: number, most: number): Row {
  return { what, figure: ms(figure), bound: `<= ${most} ms`, met: figure <= most }
}
