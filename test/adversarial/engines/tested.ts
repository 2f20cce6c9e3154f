import type { EngineUnderTest } from '../driver/engine.ts'
import type { Assertion } from '../driver/run-case.ts'

/** An engine with what differs in how it is tested. */
export interface TestedEngine {
  readonly name: string
  /** Whether this machine lacks it, and what opens it otherwise. It probes, so ask once per file. */
  ready(): Promise<{ readonly skip: boolean; readonly open: () => EngineUnderTest }>
  /** The groups of cases that it is tested with. Default: all that run scripts. */
  readonly groups?: readonly string[]
  /** Cases that are faults of what the engine is built on. */
  readonly faults: ReadonlyMap<string, Assertion>
  /** Cases that are not for this engine, or stand in a test of their own: why, or where. */
  readonly leftOut: ReadonlyMap<string, LeftOut>
}

/** Why a case is not run here. */
export type LeftOut =
  | { readonly why: string }
  /** The file below `test/`, and words of the test's title; a test checks that both exist. */
  | { readonly file: string; readonly test: string }

/** The cases of the group `wasm-pyodide`, for the engines that have nothing of what they attack. */
export const NO_BRIDGE: readonly (readonly [string, LeftOut])[] = ['001', '002', '003', '004', '006', '009', '010'].map(
  (number) => [`WAS-${number}`, { why: 'its Python is no WebAssembly and has no bridge to JavaScript' }],
)
