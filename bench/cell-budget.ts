import type { Table } from './budget.ts'
import { harnessProcesses } from './idle-memory.ts'
import { openKernelTrace, type TraceEvent } from './kernel-trace.ts'
import { pause, summarize, WARM_UP } from './measure.ts'
import { ms, type Row } from './row.ts'
import { createSandglass } from './subject.ts'

const CELLS = 60
const PAUSE_MS = 5

/** The parts of a cell, in their order. */
const PARTS = {
  request: 'host: from the call to the request',
  toBroker: 'crossing: until the next call of the broker',
  handOver: 'broker: until the cell is handed over to the process of the session',
  toHead: 'crossing: until the next call of that process',
  cell: 'process of the session: the cell, until its last line is written',
  back: 'crossing: until the next call of the broker',
  answer: 'broker: the lines of the cell, its checks, the last frame',
  toHost: 'crossing: until the host reads',
  result: 'host: until the result',
} as const

type Part = keyof typeof PARTS

/** The costs of one cell by part. */
type Costs = Readonly<Record<Part, { readonly ms: number; readonly faults: number; readonly calls: number }>>

/**
 * Measures where the time of a cell `1` goes, by the kernel's own trace, which takes root and makes cells slower. The copy of the process
 * is made after the result, so it is no part. Returns one row that says why if the kernel does not trace.
 */
export async function cellBudget(): Promise<Table> {
  const titles = ['time, p50', 'page faults', 'system calls']
  const kernel = openKernelTrace()
  if (typeof kernel === 'string')
    return { titles, rows: [{ what: `a cell (not measured: ${kernel})`, figure: ['', '', ''] }] }
  try {
    const found = await measure(kernel)
    const rows = Object.entries(PARTS).map(([part, what]): Row => {
      const of = (name: 'ms' | 'faults' | 'calls'): number =>
        summarize(found.map((costs) => costs[part as Part][name])).p50
      return { what, figure: [ms(of('ms')), of('faults').toFixed(0), of('calls').toFixed(0)] }
    })
    return { titles, rows }
  } finally {
    kernel.close()
  }
}

async function measure(kernel: Exclude<ReturnType<typeof openKernelTrace>, string>): Promise<Costs[]> {
  await using sg = await createSandglass({ engine: 'local', poolSize: 1, maxOverflow: 0 })
  await using session = await sg.session()
  for (let n = 0; n < WARM_UP; n += 1) {
    await session.run('1')
    await pause(PAUSE_MS)
  }
  const times: { readonly begin: number; readonly end: number }[] = []
  kernel.start([process.pid, ...harnessProcesses()])
  for (let n = 0; n < CELLS; n += 1) {
    await pause(PAUSE_MS)
    const begin = monotonicSec()
    await session.run('1')
    times.push({ begin, end: monotonicSec() })
  }
  const events = kernel.stop()
  const found = times.map((time) => costsOf(events, time)).filter((costs) => costs !== undefined)
  if (found.length < CELLS / 2) throw new Error(`only ${found.length} of ${CELLS} traced cells are complete`)
  return found
}

/** Splits one cell into its parts. Returns undefined if one of its marks is missing. */
function costsOf(events: readonly TraceEvent[], { begin, end }: { begin: number; end: number }): Costs | undefined {
  const own = events.filter(({ time }) => time >= begin && time <= end)
  const calls = own.filter(({ kind }) => kind === 'call')
  const host = process.pid
  const sent = calls.find(({ pid, call }) => pid === host && call === 'write')
  const received = calls.find(({ pid, time }) => pid !== host && time > (sent?.time ?? Infinity))
  const broker = received?.pid
  const handed = calls.find(({ pid, call }) => pid === broker && call === 'sendmsg')
  const began = calls.find(({ pid, time }) => pid !== host && pid !== broker && time > (handed?.time ?? Infinity))
  const head = began?.pid
  const written = calls.findLast(({ pid, call }) => pid === head && call === 'write')
  const noticed = calls.find(({ pid, time }) => pid === broker && time > (written?.time ?? Infinity))
  const answered = calls.findLast(({ pid, call }) => pid === broker && (call === 'write' || call === 'writev'))
  const read = calls.find(({ pid, time }) => pid === host && time > (answered?.time ?? Infinity))
  const marks = [
    begin,
    ...[sent, received, handed, began, written, noticed, answered, read].map((mark) => mark?.time),
    end,
  ]
  const workers = [host, undefined, broker, undefined, head, undefined, broker, undefined, host]
  const parts = Object.keys(PARTS).map((part, at): [string, Costs[Part]] | undefined => {
    const [from, to] = [marks[at], marks[at + 1]]
    if (from === undefined || to === undefined || to < from) return undefined
    const within = own.filter(({ time, pid }) => time >= from && time < to && pid === workers[at])
    const count = (kind: TraceEvent['kind']): number => within.filter((event) => event.kind === kind).length
    return [part, { ms: (to - from) * 1000, faults: count('fault'), calls: count('call') }]
  })
  return parts.every((part) => part !== undefined) ? (Object.fromEntries(parts) as Costs) : undefined
}

function monotonicSec(): number {
  return Number(process.hrtime.bigint()) / 1e9
}
