/** The result of a set of tests. */
export interface TestCounts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

export const NO_TESTS: TestCounts = { passed: 0, failed: 0, skipped: 0 }
/** The counts of a test program that ended before it reported any. */
export const ONE_FAILURE: TestCounts = { passed: 0, failed: 1, skipped: 0 }

export function sum(all: readonly TestCounts[]): TestCounts {
  return {
    passed: all.reduce((total, counts) => total + counts.passed, 0),
    failed: all.reduce((total, counts) => total + counts.failed, 0),
    skipped: all.reduce((total, counts) => total + counts.skipped, 0),
  }
}

/** `3 passed, 0 failed`, and `, 1 skipped` when there is one. */
export function formatCounts(counts: TestCounts): string {
  const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''
  return `${counts.passed} passed, ${counts.failed} failed${skipped}`
}
