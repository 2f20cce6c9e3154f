import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { EntryPoint } from './entry-point.ts'
import { ENTRY_POINTS } from './entry-points.ts'
import type { Cost, StallReport } from './measure.ts'

const MiB = 1024 * 1024
/** The longest stall that the promise allows. */
const MAX_STALL_MS = 250
const MAX_GROWTH_BYTES = 64 * MiB
/** The maximum exponent of the growth of cost with size. */
const MAX_POWER = 1.3
/** Costs below this are noise. */
const MIN_CPU_MS = 20
/** The time after which the process of an entry point is killed. */
const HANG_MS = 200_000

/** An entry point that was driven; `problems` is empty when it kept the promise. */
export interface StallVerdict {
  readonly entryPoint: EntryPoint
  /** Null when the process ended or hung. */
  readonly report: StallReport | null
  readonly problems: readonly string[]
}

export interface StallOptions {
  readonly repetitions: number
  /** A part of the names of the entry points. Default: all. */
  readonly only?: string
  readonly onVerdict?: (verdict: StallVerdict) => void
}

/** Drives every entry point, each in a process of its own, so that a crash is a finding and does not end the campaign. */
export async function stallCampaign({ repetitions, only = '', onVerdict }: StallOptions): Promise<StallVerdict[]> {
  const verdicts: StallVerdict[] = []
  for (const entryPoint of ENTRY_POINTS.filter(({ name }) => name.includes(only))) {
    const verdict = await drive(entryPoint, repetitions)
    verdicts.push(verdict)
    onVerdict?.(verdict)
  }
  return verdicts
}

async function drive(entryPoint: EntryPoint, repetitions: number): Promise<StallVerdict> {
  try {
    const measured = (await measure(entryPoint, String(repetitions))) as StallReport
    const grownBytes = Math.max(measured.grownBytes, (await measure(entryPoint, 'memory')) as number)
    const report = { ...measured, grownBytes }
    return { entryPoint, report, problems: problemsOf(report) }
  } catch (error) {
    const { killed, signal, stderr = '' } = error as { killed?: boolean; signal?: string; stderr?: string }
    const how =
      killed === true ? `took over ${HANG_MS / 1000} s` : `ended the process (${signal ?? stderr.trim().slice(-300)})`
    return { entryPoint, report: null, problems: [how] }
  }
}

/** Runs `measure.main.ts` in a process of its own; returns what it prints. */
async function measure({ name }: EntryPoint, what: string): Promise<unknown> {
  const main = new URL('measure.main.ts', import.meta.url).pathname
  // Without a bound, young garbage would count as growth.
  const flags = ['--disable-warning=ExperimentalWarning', '--expose-gc', '--max-semi-space-size=16']
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, main, name, what], {
    timeout: HANG_MS,
    killSignal: 'SIGKILL',
    maxBuffer: MiB,
  })
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
}

/** The parts of the promise that a report breaks. */
export function problemsOf({ costs, limitBytes, unit, grownBytes }: StallReport): string[] {
  const stall = Math.max(...costs.map(({ stallMs }) => stallMs))
  const power = powerOf(costs)
  return [
    ...(stall > MAX_STALL_MS ? [`stalled the event loop for ${stall.toFixed(0)} ms`] : []),
    ...(power > MAX_POWER ? [`its cost grows with the ${unit} to the power of ${power.toFixed(2)}`] : []),
    ...(grownBytes > MAX_GROWTH_BYTES + limitBytes ? [`memory grew by ${(grownBytes / MiB).toFixed(0)} MiB`] : []),
  ]
}

/** The exponent of the growth of cost from the second to last size to the last; 0 if both costs are below the noise. */
export function powerOf(costs: readonly Cost[]): number {
  const [before, last] = costs.slice(-2)
  if (before === undefined || last === undefined || last.cpuMs < MIN_CPU_MS) return 0
  return Math.log(last.cpuMs / Math.max(before.cpuMs, 1)) / Math.log(last.size / before.size)
}

/** The rows of the table in docs/reliability/stalls.md. */
export function stallRows(verdicts: readonly StallVerdict[]): string[] {
  return verdicts.map(({ entryPoint: { name, from, unit, sizes }, report, problems }) => {
    const size = `${(sizes.at(-1) ?? 0).toLocaleString('en')} ${unit}`
    if (report === null) return `| ${from} | ${name} | ${size} | ${problems.join('; ')} |  |  |  |  |`
    const stall = Math.max(...report.costs.map(({ stallMs }) => stallMs)).toFixed(0)
    const power = powerOf(report.costs)
    const grown = (report.grownBytes / MiB).toFixed(0)
    return `| ${from} | ${name} | ${size} | ${stall} ms | ${power === 0 ? 'below 20 ms' : power.toFixed(2)} | ${grown} MiB | ${report.costs.at(-1)?.outcome ?? ''} | ${problems.length > 0 ? '**broken**' : 'kept'} |`
  })
}
