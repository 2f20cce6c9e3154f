import type { Sandglass } from '../src/index.ts'
import { channelEcho } from './channel-echo.ts'
import { JupyterKernel } from './jupyter-kernel.ts'
import { measureInTurns, measureMs, WARM_UP } from './measure.ts'
import { ms, ratioRow, type Row } from './row.ts'
import { charts, idleSession, LIVE, states, touched } from './session-states.ts'
import { createSandglass, localEngine, resolveForBench } from './subject.ts'

const ROUNDS = 200
const FIRST_ROUNDS = 50
const PAUSE_MS = 5
/** Each series follows itself, as the cells of a session do. */
const IN_A_ROW = 10
const GiB = 1024 * 1024 * 1024
/** A Python that has `jupyter_client` and `ipykernel`, to compare with. */
const JUPYTER = process.env['SANDGLASS_BENCH_JUPYTER']
/** A directory with numpy and matplotlib. */
const PACKAGES = process.env['BENCH_PACKAGES']

/** Compares cells of sessions with runs and, if installed, a Jupyter kernel; then measures checkpoints, rollbacks and branches. */
export async function sessions(): Promise<Row[]> {
  const shared = { engine: 'local', poolSize: 1, limits: { memoryBytes: GiB } } as const
  await using sg = await createSandglass(shared)
  const rows = [...(await cells(sg)), ...(await idleSession(sg)), ...(await states(sg, LIVE.nothing))]
  rows.push(...(await states(sg, LIVE.bytearray)), ...(await touched(sg, LIVE.bytearray)))
  if (PACKAGES === undefined)
    return [...rows, { what: 'sessions with numpy and matplotlib', figure: 'not measured: BENCH_PACKAGES is not set' }]
  await using equipped = await createSandglass({ ...shared, packages: PACKAGES })
  rows.push(...(await states(equipped, LIVE.numpy)), ...(await touched(equipped, LIVE.numpy)))
  return [...rows, ...(await charts(equipped))]
}

async function cells(sg: Sandglass): Promise<Row[]> {
  await using kept = await sg.session()
  await using bare = await sg.session({ checkpoints: 'off' })
  const engine = localEngine()
  await using sandbox = await engine.create(resolveForBench().spec)
  await using jupyter = JUPYTER === undefined ? undefined : new JupyterKernel(JUPYTER)
  const series = {
    run: () => measureMs(() => sg.run('1')),
    echo: () => channelEcho(sandbox),
    cell: () => measureMs(() => kept.run('1')),
    bare: () => measureMs(() => bare.run('1')),
    ...(jupyter === undefined ? {} : { jupyter: () => jupyter.measure() }),
  }
  const first = await measureInTurns(FIRST_ROUNDS, PAUSE_MS, series, IN_A_ROW)
  await measureInTurns(WARM_UP - FIRST_ROUNDS, PAUSE_MS, series, IN_A_ROW)
  const took = await measureInTurns(ROUNDS, PAUSE_MS, series, IN_A_ROW)
  const p50 = (name: string): number => took[name]?.p50 ?? Number.NaN
  const what = `\`s.run('1')\` after ${WARM_UP}, ${PAUSE_MS} ms between two, p50 (n=${ROUNDS})`
  const above = p50('cell') - p50('echo')
  const rows: Row[] = [
    {
      what,
      figure: `${ms(p50('cell'))} = ${ms(above)} above the echo of a channel (${ms(p50('echo'))})`,
      bound: '<= 1 ms above the echo',
      met: above <= 1,
    },
    ratioRow('the same', `${ms(p50('cell'))} vs ${ms(p50('run'))}`, p50('cell') / p50('run'), 1, "`sg.run('1')`"),
    { what: "the same, `checkpoints: 'off'`", figure: ms(p50('bare')) },
    {
      what: `the same, the first ${FIRST_ROUNDS} of the process of the host`,
      figure: ms(first['cell']?.p50 ?? Number.NaN),
    },
  ]
  if (jupyter === undefined) return rows
  const figure = `${ms(p50('cell'))} vs ${ms(p50('jupyter'))}`
  return [...rows, ratioRow('the same', figure, p50('cell') / p50('jupyter'), 0.3, 'a cell of a Jupyter kernel')]
}
