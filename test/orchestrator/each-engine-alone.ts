import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import { dockerEngine, localEngine, pyodideEngine, type SandboxEngine } from '../../src/index.ts'
import { requireDockerEngine } from '../docker-engine.ts'
import { requireLocalEngine } from '../local-engine.ts'

/** An engine that a group of tests shares, for pools of their own. */
export interface EngineAlone {
  readonly name: 'local' | 'docker' | 'pyodide'
  /** There from the first test on. */
  readonly engine: SandboxEngine
}

const { skip: noLocal } = await requireLocalEngine()
const { skip: noDocker } = await requireDockerEngine()

/** Makes the same tests for each engine; one that is not usable here says why in a printed line. */
export function onEachEngineAlone(tests: (at: EngineAlone) => void): void {
  describe.skipIf(noLocal)('on the local engine', () => {
    tests(opened('local', () => localEngine()))
  })
  describe.skipIf(noDocker)('on the docker engine', () => {
    tests(opened('docker', () => dockerEngine()))
  })
  describe('on the pyodide engine', () => {
    const cacheDir = mkdtempSync(join(tmpdir(), 'sandglass-each-engine-'))
    tests(opened('pyodide', () => pyodideEngine({ cacheDir })))
    afterAll(() => rmSync(cacheDir, { recursive: true, force: true }))
  })
}

function opened(name: EngineAlone['name'], make: () => SandboxEngine): EngineAlone {
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
