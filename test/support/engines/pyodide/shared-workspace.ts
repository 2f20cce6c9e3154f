import { createSandglass, type Sandglass, type Workspace } from '../../../../src/index.ts'
import { sharedCache } from './shared-cache.ts'

const MiB = 1024 * 1024

/** A Sandglass on the engine `pyodide`, and one workspace of it. */
export interface SharedWorkspace extends AsyncDisposable {
  readonly sg: Sandglass
  readonly ws: Workspace
}

/** Opens a workspace that all tests of a file use. */
export async function openSharedWorkspace(): Promise<SharedWorkspace> {
  const cache = sharedCache()
  const limits = { memoryBytes: 256 * MiB, diskBytes: 64 * MiB }
  const sg = await createSandglass({ engine: 'pyodide', poolSize: 0, limits, pyodide: { cacheDir: cache.path } })
  const ws = await sg.workspace()
  const close = async (): Promise<void> => {
    await sg.close()
    cache[Symbol.dispose]()
  }
  return { sg, ws, [Symbol.asyncDispose]: close }
}
