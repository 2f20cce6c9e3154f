import type { ViteUserConfig } from 'vitest/config'

/** Tests that start no sandbox and take more than a second: they count time, memory or a whole library. */
const SLOW = 'test/unit/**/*.slow.test.ts'
/** Tests of the library and the command line in sandboxes, and the longest file, which loads one processor alone. */
const LIBRARY = [
  'test/sandbox/{cli,environments,examples,orchestrator,telemetry,tools}/**/*.test.ts',
  'test/sandbox/conformance/pyodide.test.ts',
]
/** Where there is no person to wait, a failure by a full machine costs more than the time of another worker saves. */
const CAREFUL = process.env['CI'] === undefined ? 2 : 1

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
      // Bounds on settling and killing are behaviour, and hold where the machine is not full of other files' sandboxes.
      // Few tests of the library have some, and they wait for most of their time.
      ...[
        { name: 'library', include: LIBRARY, exclude: [], maxWorkers: 2 },
        { name: 'sandbox', include: ['test/sandbox/**/*.test.ts', SLOW], exclude: LIBRARY, maxWorkers: CAREFUL },
        { name: 'daemon', include: ['test/daemon/**/*.test.ts'], exclude: [], maxWorkers: 1 },
        { name: 'campaign', include: ['test/campaign/**/*.test.ts'], exclude: [], maxWorkers: 1 },
      ].map((project, index) => ({
        test: {
          ...project,
          // Sandboxes hold processes, descriptors and uids: a worker of its own keeps one file's leak out of the next.
          pool: 'forks' as const,
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
