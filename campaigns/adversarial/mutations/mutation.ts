/** One defence and the patches that remove it from a copy of the tree. The package itself has no switch that weakens a defence. */
export interface Mutation {
  readonly name: string
  /** The defence that is removed, in the words of the design. */
  readonly defence: string
  /** The behaviour of the patched copy. */
  readonly instead: string
  /** The patches; each replaced text occurs exactly once in its file. */
  readonly patches: readonly Patch[]
  /** A second defence that would stop the attack, and is removed as well. */
  readonly doubled?: string
  /** The tests of this defence: only they and the control tests are run, and only they can detect its removal. */
  readonly selected: readonly TestSelection[]
  /** One or two quick tests that detect it: the short form runs only these. Empty: only the long form tries this mutation. */
  readonly quick: readonly TestSelection[]
  /** Its attack takes the processors, and shows nothing beside another trial. */
  readonly alone?: true
}

/** An exact replacement in one file. */
export interface Patch {
  /** Below the root of the tree. */
  readonly file: string
  readonly from: string
  readonly to: string
}

/** Tests of one suite. */
export interface TestSelection {
  readonly suite: Suite
  /** Parts of full titles; a test with any of them is selected. */
  readonly titles: readonly string[]
}

const ADVERSARIAL = 'test/campaign/adversarial/local'

/** A suite that runs on mutated copies. */
export type Suite =
  | 'cases'
  | 'supervisor'
  | 'between-runs'
  | 'defences'
  | 'fresh'
  | 'growth'
  | 'workspace-files'
  | 'workspace-programs'
  | 'workspace-link'
  | 'workspace-persist'
  | 'lease'
  | 'installation'
  | 'named-by-scripts'
  | 'index-faults'
  | 'store'
  | 'store-order'
  | 'review'
  | 'approvals'
  | 'websocket'
  | 'code-agent'
  | 'code-agent-restart'
  | 'store-processes'
  | 'displays'
  | 'hostile-displays'
  | 'session-cells'
  | 'session-rollback'
  | 'session-checkpoints'

/** The files of the suites. */
export const SUITES: Readonly<Record<Suite, string>> = {
  cases: `${ADVERSARIAL}/cases.test.ts`,
  supervisor: `${ADVERSARIAL}/supervisor.test.ts`,
  'between-runs': `${ADVERSARIAL}/between-runs.test.ts`,
  defences: `${ADVERSARIAL}/defences.test.ts`,
  fresh: `${ADVERSARIAL}/fresh.test.ts`,
  growth: 'test/sandbox/engines/local/growth.test.ts',
  review: 'test/sandbox/orchestrator/review.test.ts',
  approvals: 'test/sandbox/tools/approvals.test.ts',
  websocket: 'test/sandbox/tools/websocket.test.ts',
  'code-agent': 'test/sandbox/code-agent/agent.test.ts',
  'code-agent-restart': 'test/sandbox/code-agent/restart.test.ts',
  'workspace-files': 'test/sandbox/workspace/files.test.ts',
  'workspace-programs': 'test/sandbox/workspace/exec.test.ts',
  'workspace-link': 'test/unit/workspace/link.test.ts',
  'workspace-persist': 'test/sandbox/workspace/persist.test.ts',
  lease: 'test/unit/persistence/lease.test.ts',
  installation: 'test/sandbox/environments/install.test.ts',
  'named-by-scripts': 'test/sandbox/environments/named-by-scripts.test.ts',
  'index-faults': 'test/sandbox/environments/index-faults.test.ts',
  store: 'test/unit/stores/directory.test.ts',
  'store-order': 'test/unit/stores/sync-order.slow.test.ts',
  'store-processes': 'test/unit/stores/two-processes.slow.test.ts',
  displays: 'test/unit/executor/displays.test.ts',
  'hostile-displays': 'test/sandbox/hostile-displays.test.ts',
  'session-cells': 'test/sandbox/session/cells.test.ts',
  'session-rollback': 'test/sandbox/session/rollback.test.ts',
  'session-checkpoints': 'test/sandbox/session/checkpoints.test.ts',
}

/** The control tests, which must pass in every mutated tree: a copy in which nothing runs proves nothing. */
export const CONTROL: TestSelection = { suite: 'cases', titles: ['benign-control'] }
/** The same for the short form. */
export const SHORT_CONTROL: TestSelection = { suite: 'cases', titles: ['OK-013'] }

/**
 * Applies one patch to the text of a file.
 * @throws Error when the text to replace does not occur exactly once, which means that the code has moved.
 */
export function patched(text: string, { file, from, to }: Patch): string {
  const count = text.split(from).length - 1
  if (count !== 1) throw new Error(`${file} holds this ${count} times and must hold it once:\n${from}`)
  return text.replace(from, () => to)
}
