import { readFileSync, writeFileSync } from 'node:fs'
import type { Sandglass } from '../src/index.ts'
import { type Phase, PHASES, type PhaseCost, costsOfRuns, type TracedRun } from './budget-phases.ts'
import { drawBudget } from './budget-picture.ts'
import { type Floor, startFloor } from './floor.ts'
import { harnessProcesses } from './idle-memory.ts'
import { openKernelTrace, type TraceEvent } from './kernel-trace.ts'
import { measureMs, pause, summarize, type Summary, WARM_UP } from './measure.ts'
import { ms, type Row } from './row.ts'
import { createSandglass } from './subject.ts'

/** Two calls that nothing else makes show in the trace where the script begins and ends. */
const SCRIPT = 'import os\nos.getppid()\nemit_result(1)\nos.getppid()'
const TRACED_RUNS = 60
const PAUSE_MS = 8
/** Runs, pauses alone and the floor are measured in turns of this many rounds. */
const TURN = 20
const CPU_RATIO = 2

/** The use of processes since their start, as the kernel counts it. */
interface Used {
  readonly cpuMs: number
  readonly faults: number
}

/** The use of one run on average, its context switches and its system calls. */
export interface Share extends Used {
  readonly switches?: number
  readonly calls?: number
}

/** The cost of one warm run, and of the floor. */
export interface Budget {
  readonly processes: Readonly<Record<'host' | 'broker' | 'zygote' | 'child' | 'floor', Share>>
  readonly run: Summary
  readonly floor: Summary
  /** The parts of a run; or why there are none. */
  readonly phases: Readonly<Record<Phase, PhaseCost>> | string
}

/** A table of the bench, with the titles of its columns of figures. */
export interface Table {
  readonly titles: readonly string[]
  readonly rows: readonly Row[]
}

/**
 * Measures what one warm run costs each process, and where the time goes. With `picture`, draws it into that file. The counts of
 * the first table come from /proc. The host's are those of runs with pauses, without those of as many pauses alone. The parts of a run, system calls and switches come from the kernel's trace, which takes root;
 * it makes runs slower, so the times of the parts add up to more than a run takes otherwise.
 */
export async function budget(python: string, rounds: number, picture?: string): Promise<Table[]> {
  const floor = startFloor(python)
  await using sg = await createSandglass({ engine: 'local', poolSize: 1, maxOverflow: 0, maxUses: 1_000_000 })
  for (let n = 0; n < WARM_UP; n += 1) {
    await sg.run(SCRIPT)
    await floor.measure()
  }
  await pause(100)
  const found = await measure(sg, floor, rounds)
  floor.close()
  if (picture !== undefined) writeFileSync(picture, drawBudget(found))
  return [tableOfProcesses(found), ...(typeof found.phases === 'string' ? [] : [tableOfPhases(found.phases)])]
}

async function measure(sg: Sandglass, floor: Floor, rounds: number): Promise<Budget> {
  const [broker = 0, zygote = 0] = harnessProcesses()
  const read = (): Record<'broker' | 'zygote' | 'child' | 'floor', Used> => ({
    broker: own(broker),
    zygote: own(zygote),
    child: ofChildren(zygote),
    floor: sum(own(floor.pid), ofChildren(floor.pid)),
  })
  const before = read()
  const run: number[] = []
  const base: number[] = []
  let host: Used = { cpuMs: 0, faults: 0 }
  for (let left = rounds; left > 0; left -= TURN) {
    const count = Math.min(left, TURN)
    const ofRuns = await hostUseOf(() => repeat(count, async () => run.push(await measureMs(() => sg.run(SCRIPT)))))
    const ofPauses = await hostUseOf(() => repeat(count, () => Promise.resolve()))
    host = add(host, { cpuMs: ofRuns.cpuMs - ofPauses.cpuMs, faults: ofRuns.faults - ofPauses.faults })
    await repeat(count, async () => base.push(await floor.measure()))
  }
  const after = read()
  const traced = await trace(sg, floor, broker, zygote)
  const share = (name: keyof Budget['processes'], used: Used): Share => ({
    cpuMs: used.cpuMs / rounds,
    faults: used.faults / rounds,
    ...(typeof traced === 'string' ? {} : traced.counts[name]),
  })
  const since = (name: keyof typeof after): Share =>
    share(name, { cpuMs: after[name].cpuMs - before[name].cpuMs, faults: after[name].faults - before[name].faults })
  const processes = {
    host: share('host', host),
    broker: since('broker'),
    zygote: since('zygote'),
    child: since('child'),
    floor: since('floor'),
  }
  return {
    processes,
    run: summarize(run),
    floor: summarize(base),
    phases: typeof traced === 'string' ? traced : traced.phases,
  }
}

async function repeat(count: number, act: () => Promise<unknown>): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    await act()
    await pause(PAUSE_MS)
  }
}

/** Measures what this process, with all its threads, uses meanwhile. */
async function hostUseOf(act: () => Promise<void>): Promise<Used> {
  const before = ofThisProcess()
  await act()
  const after = ofThisProcess()
  return { cpuMs: after.cpuMs - before.cpuMs, faults: after.faults - before.faults }
}

function add(one: Used, other: Used): Used {
  return { cpuMs: one.cpuMs + other.cpuMs, faults: one.faults + other.faults }
}

type Counts = Pick<Share, 'switches' | 'calls'>

async function trace(
  sg: Sandglass,
  floor: Floor,
  broker: number,
  zygote: number,
): Promise<string | { counts: Record<string, Counts>; phases: Record<Phase, PhaseCost> }> {
  const kernel = openKernelTrace()
  if (typeof kernel === 'string') return kernel
  try {
    const spare = harnessProcesses()[2] ?? 0
    const runs: TracedRun[] = []
    kernel.start([process.pid, broker, zygote, spare])
    for (let n = 0; n < TRACED_RUNS; n += 1) {
      const begin = monotonicSec()
      await sg.run(SCRIPT)
      runs.push({ begin, end: monotonicSec() })
      await pause(PAUSE_MS)
    }
    const { phases, counts } = costsOfRuns(kernel.stop(), runs, { host: process.pid, broker, zygote, spare })
    kernel.start([floor.pid])
    for (let n = 0; n < TRACED_RUNS; n += 1) await floor.measure()
    return { phases, counts: { ...counts, floor: countAll(kernel.stop()) } }
  } finally {
    kernel.close()
  }
}

function countAll(events: readonly TraceEvent[]): Counts {
  const of = (kind: string): number => events.filter((event) => event.kind === kind).length / TRACED_RUNS
  // Each switch shows twice if both processes are traced, and each fork is also a call.
  return { switches: of('switch') / 2, calls: of('call') }
}

function monotonicSec(): number {
  return Number(process.hrtime.bigint()) / 1e9
}

function ofThisProcess(): Used {
  const { userCPUTime, systemCPUTime, minorPageFault } = process.resourceUsage()
  return { cpuMs: (userCPUTime + systemCPUTime) / 1000, faults: minorPageFault }
}

/** Reads the use of a process with one thread. */
function own(pid: number): Used {
  const [ns] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')
  return { cpuMs: Number(ns) / 1e6, faults: statOf(pid)[7] ?? Number.NaN }
}

/** Reads the use of the children for which a process has waited. The kernel shows their processor time in steps of 10 ms. */
function ofChildren(pid: number): Used {
  const fields = statOf(pid)
  return { cpuMs: ((fields[13] ?? Number.NaN) + (fields[14] ?? Number.NaN)) * 10, faults: fields[8] ?? Number.NaN }
}

function statOf(pid: number): number[] {
  return (readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1] ?? '').split(' ').map(Number)
}

function sum(...parts: readonly Share[]): Required<Share> {
  const of = (name: keyof Share): number => parts.reduce((total, part) => total + (part[name] ?? Number.NaN), 0)
  return { cpuMs: of('cpuMs'), faults: of('faults'), switches: of('switches'), calls: of('calls') }
}

function tableOfProcesses({ processes, run, floor, phases }: Budget): Table {
  const { host, broker, zygote, child, floor: base } = processes
  const all = sum(host, broker, zygote, child)
  const columns = [host, broker, zygote, child, all, base]
  const row = (what: string, show: (share: Share) => string): Row => ({ what, figure: columns.map(show) })
  const count = (value: number | undefined): string => (value === undefined ? '–' : value.toFixed(1))
  const ratio = all.cpuMs / base.cpuMs
  const none = typeof phases === 'string' ? ` (not counted: ${phases})` : ''
  return {
    titles: ['host', 'broker', 'zygote', 'child', 'all', 'floor'],
    rows: [
      { what: `time, p50 (n=${run.n})`, figure: ['', '', '', '', ms(run.p50), ms(floor.p50)] },
      {
        ...row(`processor time: ${ratio.toFixed(2)}x floor`, (share) => ms(share.cpuMs)),
        bound: `<= ${CPU_RATIO}x floor`,
        met: ratio <= CPU_RATIO,
      },
      row('page faults', (share) => count(share.faults)),
      row(`context switches${none}`, (share) => count(share.switches)),
      row(`system calls${none}`, (share) => count(share.calls)),
    ],
  }
}

function tableOfPhases(phases: Readonly<Record<Phase, PhaseCost>>): Table {
  return {
    titles: ['time, p50', 'processor time', 'page faults', 'system calls'],
    rows: Object.entries(PHASES).map(([phase, what]) => {
      const { wallMs, cpuMs, faults, calls } = phases[phase as Phase]
      return { what, figure: [wallMs === 0 ? '–' : ms(wallMs), ms(cpuMs), faults.toFixed(1), calls.toFixed(1)] }
    }),
  }
}
