import { ENGINE_NAMES, type EngineName } from '../../src/engines/index.ts'
import type { CaseSelection } from '../../src/testing/index.ts'

/** The engines whose sandboxes are on this machine. The campaigns run on them. */
export type MachineEngine = Exclude<EngineName, 'kubernetes'>
export const MACHINE_ENGINES: readonly MachineEngine[] = ENGINE_NAMES.filter((name) => name !== 'kubernetes')

/** An engine, or a variant of one: `pyodide-box` is `pyodide` in bubblewrap, `gvisor` is `docker` with the runtime runsc. */
export type TestedEngineName = EngineName | 'gvisor' | 'pyodide-box'

/**
 * The conformance cases that run on each engine. Local runs all. The others run the cases that depend on a wall of their own,
 * and a fixed sample of the rest: Docker shares harness and broker with local, pyodide has its own broker, and bubblewrap only
 * changes how the same program starts and ends. What WebAssembly decides stays the same.
 */
export const CONFORMANCE: Readonly<Record<TestedEngineName, CaseSelection | undefined>> = {
  local: undefined,
  docker: { walls: ['engine', 'channel', 'kernel'], sampleEvery: 8 },
  gvisor: { walls: ['channel', 'kernel'], sampleEvery: 8 },
  pyodide: { walls: ['engine', 'channel', 'broker', 'webassembly'], sampleEvery: 12 },
  'pyodide-box': { walls: ['engine'], sampleEvery: 16 },
  kubernetes: { walls: ['engine', 'channel', 'kernel'], sampleEvery: 8 },
}

/** The engines that the suites run on, in the order of the table above. */
export const TESTED_ENGINES = Object.keys(CONFORMANCE) as readonly TestedEngineName[]

/** True where every suite runs whole on every engine: `npm run adversarial -- --full` sets it. */
export function isFull(): boolean {
  return process.env['SANDGLASS_TEST_FULL'] === '1'
}

/** The option `only` of the conformance suite for one engine. */
export function conformanceOf(engine: TestedEngineName): { readonly only?: CaseSelection } {
  const only = CONFORMANCE[engine]
  return only === undefined || isFull() ? {} : { only }
}
