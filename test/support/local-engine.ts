import { localEngine } from '../../src/engines/local/index.ts'
import { reportOf, skipFor } from './required.ts'
import { oncePerRun } from './run-directory.ts'

/**
 * `skip` is true when tests that need the local engine must be skipped on this machine: `describe.skipIf(skip)`. Prints the reason;
 * where SANDGLASS_TEST_REQUIRE names `local`, it throws instead, so that a run that could not test says so. The
 * global setup probes, the files read what it found.
 */
export async function requireLocalEngine(): Promise<{ readonly skip: boolean }> {
  const key = ['local', process.getuid?.(), process.env['SANDGLASS_STATE_DIR']]
  const reason = await oncePerRun(key, async () => (await reportOf(localEngine())).reason ?? null)
  if (reason === null) return { skip: false }
  skipFor('local', reason)
  return { skip: true }
}
