import type { EngineUnderTest } from '../driver/engine.ts'
import type { Assertion } from '../driver/run-case.ts'

/** An engine and the settings of its adversarial tests. */
export interface TestedEngine {
  readonly name: string
  /** Probes the machine. `skip` is true when the engine is not usable. Slow, so call it once per file. */
  ready(): Promise<{ readonly skip: boolean; readonly open: () => EngineUnderTest }>
  /** Groups of cases to run. Default: all groups that run scripts. */
  readonly groups?: readonly string[]
  /** Cases of other groups to run. */
  readonly also?: readonly string[]
  /** Assertions for the cases that inject faults into the parts below the engine. */
  readonly faults: ReadonlyMap<string, Assertion>
  /** Cases that do not apply to this engine, with the reason, or that have a separate test, with its place. */
  readonly excluded: ReadonlyMap<string, Exclusion>
}

/** The reason why a case is not run here, or the test that covers it. */
export type Exclusion =
  | { readonly why: string }
  /** The file below `test/` and a part of the test title. A test checks that both exist. */
  | { readonly file: string; readonly test: string }

/** Cases about the installation of packages, which no engine decides. */
export const INSTALLATION: readonly (readonly [string, Exclusion])[] = [
  ['PAR-006', { file: 'sandbox/environments/sources.test.ts', test: 'PAR-006' }],
  ['PAR-007', { file: 'sandbox/environments/install.test.ts', test: 'PAR-007' }],
]

/** Cases about stored and transferred files, whose attacker is the host's death or the sandbox as a whole. */
export const FILES_OF_THE_HOST: readonly (readonly [string, Exclusion])[] = [
  ['FS-030', { file: 'unit/workspace/hostile-files.test.ts', test: 'FS-030' }],
  ['FS-037', { file: 'unit/stores/kills.slow.test.ts', test: 'FS-037' }],
]

/** Exclusions of the group `wasm-pyodide` for the engines without WebAssembly. */
export const NO_BRIDGE: readonly (readonly [string, Exclusion])[] = [
  '001',
  '002',
  '003',
  '004',
  '006',
  '009',
  '010',
].map((number) => [`WAS-${number}`, { why: 'its Python does not run in WebAssembly and has no bridge to JavaScript' }])
