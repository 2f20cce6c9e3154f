import type { CaseSelection } from '../../src/testing/index.ts'

/** The engines that the suites run on. `pyodide-box` is `pyodide` in bubblewrap, `gvisor` is `docker` with the runtime runsc. */
export const TESTED_ENGINES = ['local', 'docker', 'gvisor', 'pyodide', 'pyodide-box'] as const
export type TestedEngineName = (typeof TESTED_ENGINES)[number]

/**
 * The conformance cases that run on each engine. Local runs all. The others run what a wall of their own decides, and of
 * the rest a fixed sample: Docker shares harness and broker with local, pyodide has a broker of its own, and the box only
 * adds a way to start the same program.
 */
export const CONFORMANCE: Readonly<Record<TestedEngineName, CaseSelection | undefined>> = {
  local: undefined,
  docker: { walls: ['engine', 'channel', 'kernel'], sampleEvery: 8 },
  gvisor: { walls: ['channel', 'kernel'], sampleEvery: 8 },
  pyodide: { walls: ['engine', 'channel', 'broker', 'webassembly'], sampleEvery: 6 },
  'pyodide-box': { walls: ['engine', 'webassembly'], sampleEvery: 12 },
}

/** True where every suite runs whole on every engine: `npm run adversarial -- --full` sets it. */
export function isFull(): boolean {
  return process.env['SANDGLASS_TEST_FULL'] === '1'
}

/** The option `only` of the conformance suite for one engine. */
export function conformanceOf(engine: TestedEngineName): { readonly only?: CaseSelection } {
  const only = CONFORMANCE[engine]
  return only === undefined || isFull() ? {} : { only }
}
