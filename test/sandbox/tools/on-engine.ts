import { afterAll, beforeAll, describe, expect } from 'vitest'
import type { RunOptions } from '../../../src/options/index.ts'
import { createSandglass, type Sandglass } from '../../../src/sandglass.ts'
import type { ToolsInput } from '../../../src/tools/index.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { isFull } from '../../support/walls.ts'

/** An engine, and the Sandglass on it that a group of tests shares. */
export interface OnEngine {
  readonly engine: 'local' | 'docker'
  /** Defined during the tests. */
  readonly sg: Sandglass
  /** The value that a script passes to emit_result, by default within 60 s. */
  readonly dataOf: (script: string, tools: ToolsInput, options?: RunOptions) => Promise<unknown>
}

/**
 * Runs tests on the local engine, with one sandbox kept warm. Docker runs those that depend on its channel
 * (test/daemon), and all of them in the full form of the suites.
 */
export async function onLocal(
  tests: (at: OnEngine) => void,
  { maxOverflow = 1 }: { maxOverflow?: number } = {},
): Promise<void> {
  const { skip } = await requireLocalEngine()
  describe.skipIf(skip)('on the local engine', () => {
    tests(openOn('local', maxOverflow))
  })
  if (isFull()) await onDocker(tests)
}

/** Runs the same tests on the Docker engine. */
export async function onDocker(tests: (at: OnEngine) => void): Promise<void> {
  const { skip } = await requireDockerEngine()
  describe.skipIf(skip)('on the docker engine', () => {
    tests(openOn('docker', 1))
  })
}

function openOn(engine: 'local' | 'docker', maxOverflow: number): OnEngine {
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
