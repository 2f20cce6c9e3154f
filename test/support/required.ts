import { ENGINE_NAMES } from '../../src/engines/index.ts'
import type { SandboxEngine, SandboxReport } from '../../src/sandbox/index.ts'

/** The names that SANDGLASS_TEST_REQUIRE may contain. */
const REQUIRABLE: readonly string[] = [...ENGINE_NAMES, 'gvisor', 'chromium', 's3', 'postgres']

/**
 * True when SANDGLASS_TEST_REQUIRE (a comma-separated list) makes it a failure to skip tests of this engine or tool.
 * @throws Error for an unknown name in the list: a misspelt one would require nothing.
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
 * Prints the reason why tests that need `name` are skipped.
 * @throws Error where it is required, so that a run that could not test says so.
 */
export function skipFor(name: string, reason: string): void {
  if (isRequired(name)) throw new Error(`SANDGLASS_TEST_REQUIRE names ${name}, and it is not usable: ${reason}`)
  console.warn(`skipped: ${name} is not usable here: ${reason}`)
}

/** Returns the report of an engine and the reason if it is not usable; closes the engine. */
export async function reportOf(engine: SandboxEngine): Promise<{ report: SandboxReport; reason: string | undefined }> {
  try {
    const report = await engine.report()
    const words = report.reasons.map(({ code, message, remedy }) => `${message} (${code}; ${remedy})`).join('; ')
    return { report, reason: report.usable ? undefined : words }
  } finally {
    await engine.close()
  }
}
