import type { DriveReport } from './drive.ts'
import { describeFinding } from './finding.ts'

/** The seed of the tests: always the same one, or SANDGLASS_FUZZ_SEED. */
export function seedOfTests(): number {
  const text = process.env['SANDGLASS_FUZZ_SEED'] ?? '1'
  if (!/^\d{1,9}$/.test(text))
    throw new Error(`SANDGLASS_FUZZ_SEED must be a whole number of at most nine digits, but is ${JSON.stringify(text)}`)
  return Number(text)
}

/** Prints how many cases of each property there were. */
export function announce(reports: readonly DriveReport[]): void {
  for (const { side, cases, seconds, byProperty } of reports) {
    console.log(`${side}: ${cases} cases of seed ${seedOfTests()} in ${seconds.toFixed(1)} s`)
    for (const [property, count] of Object.entries(byProperty)) console.log(`  ${count}  ${property}`)
  }
}

/** The findings in words. */
export function problemsOf(reports: readonly DriveReport[]): string[] {
  return reports.flatMap(({ findings }) => findings.map(describeFinding))
}
