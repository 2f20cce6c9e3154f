import type { ViteUserConfig } from 'vitest/config'

/** Tests that start no sandbox and take more than a second: they count time, memory or a whole library. */
const SLOW = 'test/unit/**/*.slow.test.ts'

/**
 * The TypeScript tests. The folder of a test is its rung, and *.slow.test.ts of test/unit run with the sandboxes:
 * `npm run test:unit`, `npm test` and `npm run test:all` run more and more of them (scripts/test.ts), and CONTRIBUTING.md
 * says how long each takes.
 *
 * `SANDGLASS_TEST_REQUIRE=local,docker,gvisor` (any of them) turns "this machine lacks the engine" from a skipped test with
 * a printed reason into a failure. CI sets it, so that a run that could not test says so.
 */
const config: ViteUserConfig = {
  test: {
    environment: 'node',
    // A test that passes at the second try hides a race.
    retry: 0,
    // Once for all projects.
    globalSetup: ['test/support/global-setup.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          exclude: [SLOW],
          pool: 'threads',
          maxWorkers: 2,
          // A test that needs longer is named *.slow.test.ts, and runs with the sandboxes.
          testTimeout: 1000,
          sequence: { groupOrder: 0 },
        },
      },
      ...['sandbox', 'daemon', 'campaign'].map((name, index) => ({
        test: {
          name,
          include: [`test/${name}/**/*.test.ts`, ...(name === 'sandbox' ? [SLOW] : [])],
          // Sandboxes hold processes, descriptors and uids: a worker of its own keeps one file's leak out of the next.
          pool: 'forks' as const,
          // Bounds on settling and killing are behaviour, and hold where the machine is not full of other files' sandboxes.
          // Tests of local and pyodide wait for most of their time: a developer's machine takes two files at once.
          maxWorkers: name === 'sandbox' && process.env['CI'] === undefined ? 2 : 1,
          // Starting a sandbox on a busy machine takes seconds; a real hang is still found within a minute.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: index + 1 },
        },
      })),
    ],
  },
}

export default config
