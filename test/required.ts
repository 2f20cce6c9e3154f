import type { SandboxEngine, SandboxReport } from '../src/sandbox/index.ts'

/** Whether SANDGLASS_TEST_REQUIRE (a comma-separated list) turns a skip for want of this into a failure. */
export function isRequired(name: string): boolean {
  return (process.env['SANDGLASS_TEST_REQUIRE'] ?? '').split(',').includes(name)
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
