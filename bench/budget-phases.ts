import type { TraceEvent } from './kernel-trace.ts'
import { summarize } from './measure.ts'

/** The parts of a warm run, in their order, and what happens in each. */
export const PHASES = {
  host: 'host: from the call to the request, and from the last frame to the result',
  crossing: 'crossing: from a write of one side to the next call of the other, both ways',
  broker: 'broker: from the request to its hand-over to the child',
  child: 'child: from the hand-over to the first line of the script',
  script: 'script: two lines and `emit_result(1)`',
  end: 'end: from the last line of the script until the broker knows that its process has ended; the exit',
  wipe: 'wipe: the rest of the output, the writable directories',
  proof: 'proof: sockets, files, network, limits, zygote; the last frame',
  spare: 'next spare: fork and warm-up, after the result',
} as const

/** A part of a warm run. */
export type Phase = keyof typeof PHASES

/** The cost of a part: the median of its time, the means of the rest. The last part passes after the result, and has no time. */
export interface PhaseCost {
  readonly wallMs: number
  readonly cpuMs: number
  readonly faults: number
  readonly calls: number
}

/** When a run was called and when its result arrived: seconds of the monotonic clock. */
export interface TracedRun {
  readonly begin: number
  readonly end: number
}

const WRITES = ['write', 'writev']

type Role = 'host' | 'broker' | 'zygote' | 'child' | 'next'

/** The times at which a run passes from one part to the next. */
interface Marks {
  readonly sent: number
  readonly received: number
  readonly handed: number
  readonly began: number
  readonly ended: number
  readonly asked: number
  readonly wiped: number
  readonly answered: number
  readonly read: number
}

interface Sums {
  cpuMs: number
  faults: number
  calls: number
  switches: number
}

/**
 * Splits the trace of runs into their parts. `first` has the pids of the processes, `spare` that of the first child.
 * Returns the cost of each part, and the system calls and switches of each process.
 */
export function costsOfRuns(
  events: readonly TraceEvent[],
  runs: readonly TracedRun[],
  first: Readonly<Record<'host' | 'broker' | 'zygote' | 'spare', number>>,
): { phases: Record<Phase, PhaseCost>; counts: Record<string, { switches: number; calls: number }> } {
  const phases = new Map<string, Sums>(Object.keys(PHASES).map((phase) => [phase, zero()]))
  const roles = new Map<string, Sums>()
  const walls: Record<Phase, number>[] = []
  let { spare } = first
  for (const [at, run] of runs.entries()) {
    const until = runs[at + 1]?.begin ?? Infinity
    const own = events.filter(({ time }) => time >= run.begin && time < until)
    const next = own.find(({ forked }) => forked !== undefined)?.forked ?? 0
    const pids: Record<Role, number> = {
      host: first.host,
      broker: first.broker,
      zygote: first.zygote,
      child: spare,
      next,
    }
    spare = next
    const marks = findMarks(own, pids, run)
    if (marks === undefined) continue // the run was interrupted by another job of the broker
    walls.push(wallsOf(marks, run))
    charge(own, pids, run, (role, time, part, amount) => {
      const kept = role === 'next' ? 'child' : role
      if (!roles.has(kept)) roles.set(kept, zero())
      for (const sums of [phases.get(phaseOf(role, time, marks)), roles.get(kept)]) if (sums) sums[part] += amount
    })
  }
  if (walls.length < runs.length / 2) throw new Error(`only ${walls.length} of ${runs.length} traced runs are complete`)
  const costs = [...phases].map(([phase, { cpuMs, faults, calls }]): [string, PhaseCost] => {
    const wallMs = summarize(walls.map((wall) => wall[phase as Phase])).p50
    return [phase, { wallMs, cpuMs: cpuMs / walls.length, faults: faults / walls.length, calls: calls / walls.length }]
  })
  const counts = [...roles].map(([role, { switches, calls }]): [string, { switches: number; calls: number }] => [
    role,
    { switches: switches / walls.length, calls: calls / walls.length },
  ])
  return { phases: Object.fromEntries(costs) as Record<Phase, PhaseCost>, counts: Object.fromEntries(counts) }
}

function zero(): Sums {
  return { cpuMs: 0, faults: 0, calls: 0, switches: 0 }
}

/** Finds the system calls that separate the parts. Returns undefined if one is missing. */
function findMarks(events: readonly TraceEvent[], pids: Record<Role, number>, run: TracedRun): Marks | undefined {
  const calls = events.filter(({ kind, forked }) => kind === 'call' && forked === undefined)
  const after = (time: number, role: Role, ...names: string[]): number =>
    calls.find((each) => each.time > time && each.pid === pids[role] && isOneOf(each, names))?.time ?? Number.NaN
  const sent = after(run.begin, 'host', ...WRITES)
  const received = after(sent, 'broker')
  const handed = after(received, 'broker', 'write', 'sendto')
  const began = after(handed, 'child', 'getppid')
  const ended = after(began, 'child', 'getppid')
  const asked = after(ended, 'broker', 'sendto') // the ping to the zygote: the process has ended
  const wiped = after(asked, 'broker', 'fstatfs')
  const answered =
    calls.findLast((each) => each.time < run.end && each.pid === pids.broker && isOneOf(each, WRITES))?.time ??
    Number.NaN
  const read = after(answered, 'host', 'read')
  const marks = { sent, received, handed, began, ended, asked, wiped, answered, read }
  const times = [run.begin, ...Object.values(marks), run.end]
  return times.every((time, at) => at === 0 || time >= (times[at - 1] ?? 0)) ? marks : undefined
}

function isOneOf({ call = '' }: TraceEvent, names: readonly string[]): boolean {
  return names.length === 0 || names.includes(call)
}

function wallsOf(marks: Marks, run: TracedRun): Record<Phase, number> {
  const between = (from: number, to: number): number => (to - from) * 1000
  return {
    host: between(run.begin, marks.sent) + between(marks.read, run.end),
    crossing: between(marks.sent, marks.received) + between(marks.answered, marks.read),
    broker: between(marks.received, marks.handed),
    child: between(marks.handed, marks.began),
    script: between(marks.began, marks.ended),
    end: between(marks.ended, marks.asked),
    wipe: between(marks.asked, marks.wiped),
    proof: between(marks.wiped, marks.answered),
    spare: 0,
  }
}

/** Returns the part of the run to which the work of a process at a time belongs. */
function phaseOf(role: Role, time: number, marks: Marks): Phase {
  if (role === 'host') return 'host'
  if (role === 'next') return 'spare'
  if (role === 'child') return time < marks.began ? 'child' : time <= marks.ended ? 'script' : 'end'
  if (time < marks.ended) return 'broker'
  if (time < marks.asked) return 'end'
  if (time < marks.wiped) return 'wipe'
  return time <= marks.read ? 'proof' : 'spare'
}

type Charge = (role: Role, time: number, part: keyof Sums, amount: number) => void

/** Reports each fault, call, switch and piece of processor time. A piece ends at the next event of its process. */
function charge(events: readonly TraceEvent[], pids: Record<Role, number>, run: TracedRun, report: Charge): void {
  const roles = new Map(Object.entries(pids).map(([role, pid]) => [pid, role as Role]))
  const runningSince = new Map<number, number>([[pids.host, run.begin]])
  for (const { time, pid, kind, next, forked } of events) {
    const role = roles.get(pid)
    if (role !== undefined) {
      const since = runningSince.get(pid)
      if (since !== undefined) report(role, since, 'cpuMs', (time - since) * 1000)
      runningSince.set(pid, time)
      if (kind === 'fault') report(role, time, 'faults', 1)
      if (kind === 'call' && forked === undefined) report(role, time, 'calls', 1)
      if (kind === 'switch') report(role, time, 'switches', 1)
    }
    if (kind !== 'switch') continue
    runningSince.delete(pid)
    if (next !== undefined && roles.has(next)) runningSince.set(next, time)
  }
}
