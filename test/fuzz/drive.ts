import { setImmediate as breathe } from 'node:timers/promises'
import { heldMemory } from '../support/memory.ts'
import { type Finding, recordFinding } from './finding.ts'
import type { CaseMaker, FuzzCase } from './fuzz-case.ts'
import { Random } from '../support/random.ts'
import { Hang } from './hang.ts'
import { watch } from './watchdog.ts'

/** How many cases of which side are run. */
export interface DriveOptions {
  readonly seed: number
  readonly side: string
  readonly make: CaseMaker
  readonly count: number
  readonly first?: number
  /** No further case begins behind this time. */
  readonly withinMs?: number
  /** How long one case may take; a case that takes longer is a hang, and ends the process. */
  readonly caseMs?: number
  /** Cases under way at the same time, for those that wait for clocks. */
  readonly atOnce?: number
  readonly onProgress?: (done: number) => void
  /** Bytes that are held by whoever is tested, where that is another process. */
  readonly held?: () => Promise<number>
}

/** What the cases came to. */
export interface DriveReport {
  readonly side: string
  readonly cases: number
  readonly seconds: number
  /** Cases by property. */
  readonly byProperty: Readonly<Record<string, number>>
  readonly findings: readonly Finding[]
  /** Those of the findings that are hangs. One that the watchdog notices ends the process, and leaves no report. */
  readonly hangs: number
  /** The longest that one case took. */
  readonly slowestMs: number
  /** Bytes that were held after garbage collection, at a quarter of the run and at its end. */
  readonly heldAtQuarter: number
  readonly heldAtEnd: number
}

/** Enough to see what is wrong; a broken property would find the same thing again and again. */
const MOST_FINDINGS = 20
const BREATHE_EVERY = 64
const PROGRESS_EVERY = 10_000

/** Runs cases one after the other, or some at once. Rejections and exceptions that nobody catches are findings. */
export async function drive(options: DriveOptions): Promise<DriveReport> {
  const { seed, side, make, count, first = 0, withinMs = Infinity, caseMs = 60_000, atOnce = 1 } = options
  const held = options.held ?? (async () => heldMemory())
  const started = performance.now()
  const byProperty: Record<string, number> = {}
  const findings: Finding[] = []
  let hangs = 0
  let slowestMs = 0
  let cases = 0
  let heldAtQuarter: number | undefined
  let latest: { number: number; made: FuzzCase } | undefined
  const onStray = (error: unknown): void => {
    const { number = 0, made } = latest ?? {}
    findings.push(recordFinding(seed, side, number, made?.pieces ?? [], ['nobody caught', error]))
  }
  using watchdog = watch(seed, side, caseMs)
  process.on('uncaughtException', onStray)
  process.on('unhandledRejection', onStray)
  try {
    const one = async (number: number): Promise<void> => {
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
      if (findings.length >= MOST_FINDINGS || performance.now() - started > withinMs) break
      const batch = Math.min(atOnce, first + count - number)
      if (batch === 1) await one(number)
      else await Promise.all(Array.from({ length: batch }, (_, index) => one(number + index)))
      if (cases % BREATHE_EVERY === 0) await breathe()
      if (cases >= count / 4) heldAtQuarter ??= await held()
      if (Math.floor(cases / PROGRESS_EVERY) > Math.floor((cases - batch) / PROGRESS_EVERY)) options.onProgress?.(cases)
    }
    await breathe()
  } finally {
    process.off('uncaughtException', onStray)
    process.off('unhandledRejection', onStray)
  }
  const heldAtEnd = await held()
  const seconds = (performance.now() - started) / 1000
  return {
    side,
    cases,
    seconds,
    byProperty,
    findings,
    hangs,
    slowestMs,
    heldAtQuarter: heldAtQuarter ?? heldAtEnd,
    heldAtEnd,
  }
}
