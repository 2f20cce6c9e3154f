import { localEngine } from '../src/engines/local/index.ts'

/**
 * Whether tests that need the local engine must be skipped on this machine: `describe.skipIf(skip)`. Prints the reason;
 * where SANDGLASS_TEST_REQUIRE names `local`, it throws instead, so that a run that could not test says so. It probes,
 * so ask once per file.
 */
export async function requireLocalEngine(): Promise<{ readonly skip: boolean }> {
  const engine = localEngine()
  try {
    const report = await engine.report()
    if (report.usable) return { skip: false }
    const reason = report.reasons.map(({ code, message, remedy }) => `${message} (${code}; ${remedy})`).join('; ')
    const required = (process.env['SANDGLASS_TEST_REQUIRE'] ?? '').split(',').includes('local')
    if (required) throw new Error(`SANDGLASS_TEST_REQUIRE names local, and it is not usable: ${reason}`)
    console.warn(`skipped: the local engine is not usable here: ${reason}`)
    return { skip: true }
  } finally {
    await engine.close()
  }
}
