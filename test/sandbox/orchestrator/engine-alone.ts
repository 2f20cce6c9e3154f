import { afterAll, beforeAll, describe } from 'vitest'
import type { EngineName } from '../../../src/engines/index.ts'
import { dockerEngine, localEngine, pyodideEngine, type SandboxEngine } from '../../../src/index.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { sharedCache } from '../../support/engines/pyodide/shared-cache.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

/** An engine that a group of tests shares, for pools of their own. */
export interface EngineAlone {
  readonly name: EngineName
  /** Defined during the tests. */
  readonly engine: SandboxEngine
}

/** Runs tests on the local engine. */
export async function onLocalAlone(tests: (at: EngineAlone) => void): Promise<void> {
  const { skip } = await requireLocalEngine()
  describe.skipIf(skip)('on the local engine', () => {
    tests(provide('local', () => localEngine()))
  })
}

/** Runs tests on the local and the pyodide engine; prints the reason if one is not usable here. */
export async function onLocalAndPyodide(tests: (at: EngineAlone) => void): Promise<void> {
  await onLocalAlone(tests)
  describe('on the pyodide engine', () => {
    const cache = sharedCache()
    tests(provide('pyodide', () => pyodideEngine({ cacheDir: cache.path })))
    afterAll(() => cache[Symbol.dispose]())
  })
}

/** Runs the same tests on the Docker engine. */
export async function onDockerAlone(tests: (at: EngineAlone) => void): Promise<void> {
  const { skip } = await requireDockerEngine()
  describe.skipIf(skip)('on the docker engine', () => {
    tests(provide('docker', () => dockerEngine()))
  })
}

function provide(name: EngineAlone['name'], make: () => SandboxEngine): EngineAlone {
  let engine: SandboxEngine
  beforeAll(() => {
    engine = make()
  })
  afterAll(() => engine.close())
  return {
    name,
    get engine() {
      return engine
    },
  }
}
