import { afterAll, beforeAll, describe, expect } from 'vitest'
import type { RunOptions } from '../../src/options.ts'
import { createSandglass, type Sandglass } from '../../src/sandglass.ts'
import type { ToolsInput } from '../../src/tools/index.ts'
import { requireDockerEngine } from '../docker-engine.ts'
import { requireLocalEngine } from '../local-engine.ts'

/** An engine, and the Sandglass on it that a group of tests shares. */
export interface OnEngine {
  readonly engine: 'local' | 'docker'
  /** There from the first test on. */
  readonly sg: Sandglass
  /** What a script hands to emit_result, by default within 60 s. */
  readonly dataOf: (script: string, tools: ToolsInput, options?: RunOptions) => Promise<unknown>
}

const { skip: noLocal } = await requireLocalEngine()
const { skip: noDocker } = await requireDockerEngine()

/** Makes the same tests for each engine that takes tools of the host, with one sandbox kept warm. */
export function onEachEngine(tests: (at: OnEngine) => void, { maxOverflow = 1 }: { maxOverflow?: number } = {}): void {
  describe.skipIf(noLocal)('on the local engine', () => {
    tests(opened('local', maxOverflow))
  })
  describe.skipIf(noDocker)('on the docker engine', () => {
    tests(opened('docker', maxOverflow))
  })
}

function opened(engine: 'local' | 'docker', maxOverflow: number): OnEngine {
  let sg: Sandglass
  beforeAll(async () => {
    sg = await createSandglass({ engine, poolSize: 1, maxOverflow })
  }, 60_000)
  afterAll(() => sg.close())
  return {
    engine,
    get sg() {
      return sg
    },
    async dataOf(script, tools, options = {}) {
      const { error, finalData } = await sg.run(script, { limits: { executionTimeoutSec: 60 }, tools, ...options })
      expect(error).toBe(null)
      return finalData
    },
  }
}
