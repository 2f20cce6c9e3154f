import { afterAll, beforeAll, describe } from 'vitest'
import type { Workspace } from '../../src/options/index.ts'
import { createSandglass, type Sandglass } from '../../src/sandglass.ts'
import { requireLocalEngine } from './local-engine.ts'

/** A Sandglass on the local engine and one workspace that the tests of a file share. */
export interface WorkspaceOnLocal {
  /** Both are defined during the tests. */
  readonly sg: Sandglass
  readonly ws: Workspace
}

/** Runs tests in a workspace of the local engine. */
export async function inWorkspace(tests: (at: WorkspaceOnLocal) => void): Promise<void> {
  const { skip } = await requireLocalEngine()
  describe.skipIf(skip)('in a workspace of the local engine', () => {
    let sg: Sandglass
    let ws: Workspace
    beforeAll(async () => {
      sg = await createSandglass({ engine: 'local', poolSize: 0 })
      ws = await sg.workspace()
    }, 60_000)
    afterAll(() => sg.close())
    tests({
      get sg() {
        return sg
      },
      get ws() {
        return ws
      },
    })
  })
}
