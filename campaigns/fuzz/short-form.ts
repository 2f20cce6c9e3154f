import type { DriveReport } from './drive.ts'
import { describeFinding } from './finding.ts'

/** The seed of the tests: a constant, or SANDGLASS_FUZZ_SEED. */
export function seedOfTests(): number {
  const text = process.env['SANDGLASS_FUZZ_SEED'] ?? '1'
  if (!/^\d{1,9}$/.test(text))
    throw new Error(`SANDGLASS_FUZZ_SEED must be a whole number of at most nine digits, but is ${JSON.stringify(text)}`)
  return Number(text)
}

/** Prints the number of cases of each property. */
export function announce(reports: readonly DriveReport[]): void {
  for (const { side, cases, seconds, byProperty } of reports) {
    console.log(`${side}: ${cases} cases of seed ${seedOfTests()} in ${seconds.toFixed(1)} s`)
    for (const [property, count] of Object.entries(byProperty)) console.log(`  ${count}  ${property}`)
  }
}

/** Describes the findings. */
export function problemsOf(reports: readonly DriveReport[]): string[] {
  return reports.flatMap(({ findings }) => findings.map(describeFinding))
}
