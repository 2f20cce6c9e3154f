import type { ViteUserConfig } from 'vitest/config'

/**
 * The TypeScript tests. `npm test` runs these and the Python tests of the harness; `npx vitest run` runs these alone.
 *
 * `SANDGLASS_TEST_REQUIRE=local,docker,gvisor` (any of them) turns "this machine lacks the engine" from a skipped test with
 * a printed reason into a failure. CI sets it, so that a run that could not test says so.
 */
const config: ViteUserConfig = {
  test: {
    include: ['test/**/*.test.ts'],
    environment: 'node',
    // Sandboxes hold processes, descriptors and uids: a worker of its own keeps one file's leak out of the next.
    pool: 'forks',
    // Bounds on settling and killing are behaviour, and hold where the machine is not full of other files' sandboxes.
    maxWorkers: process.env['CI'] === undefined ? 2 : 1,
    // Starting a sandbox on a busy machine takes seconds; a real hang is still found within a minute.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A test that passes at the second try hides a race.
    retry: 0,
  },
}

export default config
