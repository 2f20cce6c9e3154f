import type { ViteUserConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Tests that start no sandbox and take more than a second: they count time, memory or a whole library. Only `test:all` has them. */
const SLOW = 'test/unit/**/*.slow.test.ts'
/** Unit tests that count the timers of fake clocks. In a shared thread, what another file left behind could set one, too. */
const COUNTS_TIMERS = [
  'test/unit/pool/{close,failure,model,queue}.test.ts',
  'test/unit/executor/{channel,cpu-boost,mission,tool-time}.test.ts',
  'test/unit/llm/caller.test.ts',
]
/** Tests of the library and the command line in sandboxes, and conformance, which loads one processor for each engine. */
const LIBRARY = [
  'test/sandbox/{cli,conformance,environments,examples,orchestrator,stores,telemetry,tools,workspace-api}/**/*.test.ts',
  'test/sandbox/workspace/{acceptance,files,persist,persist-in-s3,pyodide,serial}.test.ts',
  'test/sandbox/{agents,docs,packages}.test.ts',
]
/** Files that wait for deadlines and time-outs for most of their time, longest first. */
const WAITING = [
  'test/sandbox/engines/local/cpu-limit.test.ts',
  'test/sandbox/workspace/persist-faults.test.ts',
  'test/sandbox/engines/pyodide/recovery.test.ts',
  'test/sandbox/engines/local/orphan-retry.test.ts',
  'test/sandbox/stores/s3.test.ts',
  'test/unit/adversarial/invariants.slow.test.ts',
]
/** These, and the files that take more than 20 s of a rung with two workers, longest first. */
const LONGEST = [
  ...WAITING,
  'test/sandbox/conformance/pyodide.test.ts',
  'test/sandbox/conformance/pyodide-box.test.ts',
  'test/sandbox/conformance/local.test.ts',
  'test/sandbox/environments/install.test.ts',
  'test/sandbox/engines/pyodide/snapshot.test.ts',
  'test/sandbox/tools/host-files.test.ts',
  'test/sandbox/cli/run.test.ts',
  'test/sandbox/cli/solve.test.ts',
  'test/sandbox/cli/tools.test.ts',
  'test/sandbox/environments/pyodide.test.ts',
  'test/daemon/conformance/gvisor.test.ts',
  'test/daemon/engines/docker/daemon-faults.test.ts',
  'test/daemon/conformance/docker.test.ts',
  'test/campaign/fuzz/stall.test.ts',
  // What fills the processors beside what waits.
  'test/cluster/conformance/kubernetes.test.ts',
  'test/cluster/faults.test.ts',
  'test/cluster/network.test.ts',
  'test/cluster/adversarial/kubernetes/cases.test.ts',
  'test/cluster/leases.test.ts',
  'test/cluster/engine.test.ts',
  'test/cluster/application.test.ts',
  'test/cluster/packages.test.ts',
  'test/cluster/persist.test.ts',
]
/** Campaigns that need about one processor, and whose bounds leave room for another such file. */
const PAIRED = [
  'test/campaign/fuzz/stall.test.ts',
  'test/campaign/adversarial/docker/{supervisor,fresh,between-runs,defences}.test.ts',
  'test/campaign/peers.test.ts',
  'test/campaign/adversarial/pyodide/fresh.test.ts',
  'test/campaign/adversarial/local/{supervisor,fresh,between-runs,defences}.test.ts',
  'test/campaign/kills.test.ts',
  'test/campaign/fuzz/{host,broker,trees}.test.ts',
]
/** Where there is no person to wait, a failure by a full machine costs more than the time of another worker saves. */
const IS_CI = process.env['CI'] !== undefined

/** Node loads the library as it does for users, and from its cache of compiled code: in half of the time that vite takes. */
const BY_NODE = { server: { deps: { external: [/\/src\/.*\.ts$/] } } }

/** Starts the longest files first, or a worker ends alone with one: without times of an earlier run, vitest goes by size. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const index = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}`))
      return index === -1 ? LONGEST.length : index
    }
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b))
  }
}

/**
 * The TypeScript tests. The folder of a test is its rung, and *.slow.test.ts of test/unit run in the last one:
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
    sequence: { sequencer: LongestFirst },
    // Once for all projects.
    globalSetup: ['test/support/global-setup.ts'],
    projects: [
      ...[
        // Loading the library again for each file takes longer than the tests.
        { name: 'unit', include: ['test/unit/**/*.test.ts'], exclude: [SLOW, ...COUNTS_TIMERS], isolate: false },
        { name: 'timers', include: COUNTS_TIMERS, exclude: [], isolate: true },
      ].map((project) => ({
        test: {
          ...project,
          ...BY_NODE,
          pool: 'threads' as const,
          maxWorkers: 2,
          unstubEnvs: true,
          // A test that takes a second of processor time fails there. It is named *.slow.test.ts, and is one of the project `slow`.
          setupFiles: ['test/support/unit-setup.ts'],
          // These find what hangs. By the clock, a test of no length takes a second on a machine that stands still for that time.
          testTimeout: 15_000,
          hookTimeout: 60_000,
          // The Python tests, which begin with `waiting`, have normally ended.
          sequence: { groupOrder: 2 },
        },
      })),
      // Bounds on settling and killing are behaviour. They hold with two files at once, and not where more files fill the machine. A
      // campaign runs several hosts or cases at once by itself.
      // Few tests of the library have some, and its files share processes: loading it takes half a second of processor time.
      ...[
        { name: 'waiting', include: WAITING, exclude: [], maxWorkers: IS_CI ? 2 : 4, order: 0 },
        { name: 'library', include: LIBRARY, exclude: WAITING, maxWorkers: IS_CI ? 2 : 3, isolate: false, order: 1 },
        {
          name: 'sandbox',
          include: ['test/sandbox/**/*.test.ts'],
          exclude: [...WAITING, ...LIBRARY],
          maxWorkers: 2,
          order: 3,
        },
        { name: 'slow', include: [SLOW], exclude: WAITING, maxWorkers: 2, order: 3 },
        { name: 'daemon', include: ['test/daemon/**/*.test.ts'], exclude: [], maxWorkers: 2, order: 4 },
        { name: 'postgres', include: ['test/postgres/**/*.test.ts'], exclude: [], maxWorkers: 2, order: 4 },
        { name: 'cluster', include: ['test/cluster/**/*.test.ts'], exclude: [], maxWorkers: 2, order: 4 },
        { name: 'paired', include: PAIRED, exclude: [], maxWorkers: 2, order: 5 },
        { name: 'campaign', include: ['test/campaign/**/*.test.ts'], exclude: PAIRED, maxWorkers: 1, order: 6 },
      ].map(({ order, ...project }) => ({
        test: {
          ...project,
          ...BY_NODE,
          setupFiles: ['test/support/worker-setup.ts'],
          // Sandboxes hold processes, descriptors and uids: elsewhere, a worker of its own keeps one file's leak out of the next.
          pool: 'forks' as const,
          // Starting a sandbox on a busy machine takes seconds; a real hang is still found within a minute.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: order },
        },
      })),
    ],
  },
}

export default config
