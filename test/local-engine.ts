import { localEngine } from '../src/engines/local/index.ts'
import { reportOf, skipFor } from './required.ts'

/**
 * Whether tests that need the local engine must be skipped on this machine: `describe.skipIf(skip)`. Prints the reason;
 * where SANDGLASS_TEST_REQUIRE names `local`, it throws instead, so that a run that could not test says so. It probes,
 * so ask once per file.
 */
export async function requireLocalEngine(): Promise<{ readonly skip: boolean }> {
  const { reason } = await reportOf(localEngine())
  if (reason === undefined) return { skip: false }
  skipFor('local', reason)
  return { skip: true }
}
