import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { threadMsAtRest } from '../../../test/support/measure-best.ts'
import { watchStalls } from '../../../test/support/stall.ts'
import type { EntryPoint, Prepared } from './entry-point.ts'

/** The cost of one size at one entry point. Its times are the minimum of the repetitions, because a busy machine only adds time. */
export interface Cost {
  readonly size: number
  /** CPU time of the thread of the event loop. */
  readonly cpuMs: number
  /** The longest time in which the event loop did nothing else. */
  readonly stallMs: number
  /** The end of the run, or the error that refused it. */
  readonly outcome: string
  /** The peak growth of resident memory; the maximum of the repetitions. */
  readonly grownBytes: number
}

/** The cost of one entry point for the host. */
export interface StallReport {
  readonly name: string
  readonly from: EntryPoint['from']
  readonly unit: string
  readonly limitBytes: number
  readonly costs: readonly Cost[]
  /** The growth of memory by the largest size in a fresh process, and by any size in this one: the larger of both. */
  readonly grownBytes: number
}

const RESOLUTION_MS = 1
/** Time for a few turns of the event loop. */
const TICK_MS = 10
/** A size that takes this long is not tried again. */
const LONG_MS = 2000
/**
 * The last two sizes, from which the growth of the cost is computed, are tried in turns, so that a time in which the machine is slow
 * does not fall on one of them; and more often while one of them took less processor time in sum: some milliseconds of noise in each
 * try would change the growth.
 */
const ENOUGH_CPU_MS = 300
/** The maximum time for these repetitions. */
const ENOUGH_MS = 3000
const MAX_REPETITIONS = 20

/** Drives one entry point of this process with growing input. Its memory is that of the process: one entry point for each. */
export async function measureStalls(entryPoint: EntryPoint, repetitions: number): Promise<StallReport> {
  const { name, from, unit, limitBytes, sizes } = entryPoint
  const [smallest = 1] = sizes
  await costsOf(entryPoint, [smallest], 2) // compiles the code that the others run
  const costs: Cost[] = []
  for (const size of sizes.slice(0, -2)) costs.push(...(await costsOf(entryPoint, [size], repetitions)))
  costs.push(...(await costsOf(entryPoint, sizes.slice(-2), repetitions, ENOUGH_CPU_MS)))
  const grownBytes = Math.max(...costs.map((cost) => cost.grownBytes))
  return { name, from, unit, limitBytes, costs, grownBytes }
}

/** The growth of memory by the largest size, in a process that has driven only the smallest one before. */
export async function measureMemory(entryPoint: EntryPoint): Promise<number> {
  const { sizes } = entryPoint
  await costsOf(entryPoint, sizes.slice(0, 1), 1)
  const [largest] = await costsOf(entryPoint, sizes.slice(-1), 1)
  return largest?.grownBytes ?? 0
}

/** Tries some sizes in turns: `repetitions` times, and on until each took `enoughCpuMs` of processor time in sum. */
async function costsOf(
  { prepare }: EntryPoint,
  sizes: readonly number[],
  repetitions: number,
  enoughCpuMs: number = 0,
): Promise<Cost[]> {
  await using stack = new AsyncDisposableStack()
  const inputs: { size: number; prepared: Prepared; tries: Cost[] }[] = []
  for (const size of sizes) inputs.push({ size, prepared: stack.use(await prepare(size)), tries: [] })
  const needsMore = ({ tries }: { tries: readonly Cost[] }): boolean =>
    tries.reduce((sum, { cpuMs }) => sum + cpuMs, 0) < enoughCpuMs
  const began = performance.now()
  for (let round = 1; round <= MAX_REPETITIONS; round += 1) {
    for (const { size, prepared, tries } of inputs) tries.push(await tryOnce(prepared, size))
    if (round >= repetitions && (performance.now() - began > ENOUGH_MS || !inputs.some(needsMore))) break
    if (inputs.some(({ tries }) => (tries.at(-1)?.cpuMs ?? 0) > LONG_MS)) break
  }
  return inputs.map(({ tries }) => tries.reduce(lowestOf))
}

async function tryOnce(prepared: Prepared, size: number): Promise<Cost> {
  globalThis.gc?.()
  await sleep(TICK_MS)
  const before = startPeak()
  const longestStall = watchStalls(RESOLUTION_MS)
  const spentBefore = threadMsAtRest()
  const outcome = outcomeOf(await prepared.act())
  const cpuMs = threadMsAtRest() - spentBefore
  await sleep(TICK_MS) // a stall shows when the next timer is late
  return { size, cpuMs, stallMs: longestStall(), outcome, grownBytes: memoryOf('VmHWM') - before }
}

function outcomeOf(value: unknown): string {
  if (value instanceof Error)
    return 'code' in value ? String(value.code) : `${value.name}: ${value.message.slice(0, 80)}`
  return typeof value === 'object' && value !== null && 'status' in value ? String(value.status) : 'done'
}

function lowestOf(one: Cost, other: Cost): Cost {
  return {
    size: one.size,
    outcome: other.outcome,
    cpuMs: Math.min(one.cpuMs, other.cpuMs),
    stallMs: Math.min(one.stallMs, other.stallMs),
    grownBytes: Math.max(one.grownBytes, other.grownBytes),
  }
}

/** Resets the kernel's peak of this process's resident memory; returns its current size. */
function startPeak(): number {
  writeFileSync('/proc/self/clear_refs', '5')
  return memoryOf('VmRSS')
}

function memoryOf(field: 'VmRSS' | 'VmHWM'): number {
  const [, kilobytes = '0'] =
    new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  return Number(kilobytes) * 1024
}
