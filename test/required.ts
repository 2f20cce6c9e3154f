import type { SandboxEngine, SandboxReport } from '../src/sandbox/index.ts'

/** What SANDGLASS_TEST_REQUIRE may name. */
const REQUIRABLE: readonly string[] = ['local', 'docker', 'gvisor', 'chromium']

/**
 * Whether SANDGLASS_TEST_REQUIRE (a comma-separated list) turns a skip for want of this into a failure.
 * @throws Error for a name in the list that nothing has: misspelt, it would require nothing.
 */
export function isRequired(name: string): boolean {
  const names = (process.env['SANDGLASS_TEST_REQUIRE'] ?? '').split(',').filter((one) => one !== '')
  const unknown = names.filter((one) => !REQUIRABLE.includes(one))
  if (unknown.length > 0) {
    const known = REQUIRABLE.join(', ')
    throw new Error(
      `SANDGLASS_TEST_REQUIRE names ${unknown.map((one) => JSON.stringify(one)).join(', ')}; it knows ${known}`,
    )
  }
  return names.includes(name)
}

/**
 * Says why tests that need `name` are skipped.
 * @throws Error where it is required, so that a run that could not test says so.
 */
export function skipFor(name: string, reason: string): void {
  if (isRequired(name)) throw new Error(`SANDGLASS_TEST_REQUIRE names ${name}, and it is not usable: ${reason}`)
  console.warn(`skipped: ${name} is not usable here: ${reason}`)
}

/** What an engine reports, and why it cannot be tested with; the engine is closed. */
export async function reportOf(engine: SandboxEngine): Promise<{ report: SandboxReport; reason: string | undefined }> {
  try {
    const report = await engine.report()
    const words = report.reasons.map(({ code, message, remedy }) => `${message} (${code}; ${remedy})`).join('; ')
    return { report, reason: report.usable ? undefined : words }
  } finally {
    await engine.close()
  }
}
