import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { heldMemory } from '../../test/support/memory.ts'
import { type Finding, recordFinding } from './finding.ts'
import type { CaseMaker, FuzzCase } from './fuzz-case.ts'
import { Random } from '../../test/support/random.ts'
import { Hang } from './hang.ts'
import { watch } from './watchdog.ts'

/** Options of a run of fuzz cases. */
export interface DriveOptions {
  readonly seed: number
  readonly side: string
  readonly make: CaseMaker
  readonly count: number
  readonly first?: number
  /** No new case begins after this time. */
  readonly withinMs?: number
  /** The time limit of one case; a case that takes longer is a hang and ends the process. */
  readonly caseMs?: number
  /** The number of concurrent cases, for cases that wait for clocks. */
  readonly atOnce?: number
  readonly onProgress?: (done: number) => void
  /** Measures the memory of the tested process in bytes. Default: that of this process. */
  readonly measureMemory?: () => Promise<number>
}

/** The result of the cases. */
export interface DriveReport {
  readonly side: string
  readonly cases: number
  readonly seconds: number
  /** Cases by property. */
  readonly byProperty: Readonly<Record<string, number>>
  readonly findings: readonly Finding[]
  /** Number of findings that are hangs. A hang that the watchdog notices ends the process without a report. */
  readonly hangs: number
  /** Duration of the slowest case. */
  readonly slowestMs: number
  /** Bytes in use after garbage collection, at a quarter of the run and at its end. */
  readonly memoryAtQuarter: number
  readonly memoryAtEnd: number
}

/** The run stops after this number of findings: a broken property would repeat the same one. */
const MAX_FINDINGS = 20
const YIELD_EVERY = 64
const PROGRESS_EVERY = 10_000

/** Runs cases, one or several at a time. Uncaught exceptions and unhandled rejections are findings. */
export async function drive(options: DriveOptions): Promise<DriveReport> {
  const { seed, side, make, count, first = 0, withinMs = Infinity, caseMs = 60_000, atOnce = 1 } = options
  const measureMemory = options.measureMemory ?? (async () => heldMemory())
  const started = performance.now()
  const byProperty: Record<string, number> = {}
  const findings: Finding[] = []
  let hangs = 0
  let slowestMs = 0
  let cases = 0
  let memoryAtQuarter: number | undefined
  let latest: { number: number; made: FuzzCase } | undefined
  const onUncaught = (error: unknown): void => {
    const { number = 0, made } = latest ?? {}
    findings.push(recordFinding(seed, side, number, made?.pieces ?? [], ['uncaught error', error]))
  }
  using watchdog = watch(seed, side, caseMs)
  process.on('uncaughtException', onUncaught)
  process.on('unhandledRejection', onUncaught)
  try {
    const runCase = async (number: number): Promise<void> => {
      watchdog.begin(number)
      const begun = performance.now()
      const made = make(Random.ofCase(seed, side, number))
      latest = { number, made }
      byProperty[made.property] = (byProperty[made.property] ?? 0) + 1
      try {
        const checking = made.check()
        if (checking !== undefined) await checking
      } catch (error) {
        if (error instanceof Hang) hangs += 1
        findings.push(recordFinding(seed, side, number, made.pieces, error))
      }
      if (atOnce === 1) slowestMs = Math.max(slowestMs, performance.now() - begun)
      cases += 1
    }
    for (let number = first; number < first + count; number += atOnce) {
      if (findings.length >= MAX_FINDINGS || performance.now() - started > withinMs) break
      const batch = Math.min(atOnce, first + count - number)
      if (batch === 1) await runCase(number)
      else await Promise.all(Array.from({ length: batch }, (_, index) => runCase(number + index)))
      if (cases % YIELD_EVERY === 0) await yieldToEventLoop()
      if (cases >= count / 4) memoryAtQuarter ??= await measureMemory()
      if (Math.floor(cases / PROGRESS_EVERY) > Math.floor((cases - batch) / PROGRESS_EVERY)) options.onProgress?.(cases)
    }
    await yieldToEventLoop()
  } finally {
    process.off('uncaughtException', onUncaught)
    process.off('unhandledRejection', onUncaught)
  }
  const memoryAtEnd = await measureMemory()
  const seconds = (performance.now() - started) / 1000
  return {
    side,
    cases,
    seconds,
    byProperty,
    findings,
    hangs,
    slowestMs,
    memoryAtQuarter: memoryAtQuarter ?? memoryAtEnd,
    memoryAtEnd,
  }
}
