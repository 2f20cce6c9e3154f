import { afterAll } from 'vitest'
import { createSandglass, type Sandglass, type SandglassOptions } from '../../../src/index.ts'
import { makeCacheDir } from './fixture.ts'
import { PackageIndex } from './package-index.ts'
import { makeWheel, type Wheel } from './wheel.ts'

const caches: Disposable[] = []
const indexes: AsyncDisposable[] = []
afterAll(async () => {
  for (const cache of caches) cache[Symbol.dispose]()
  for (const index of indexes) await index[Symbol.asyncDispose]()
})

/** An empty cache, removed at the end of the file that asked for it. */
export function newCache(): string {
  const cache = makeCacheDir()
  caches.push(cache)
  return cache.path
}

/** An index on loopback with these wheels, stopped at the end of the file that asked for it. */
export async function newIndex(...wheels: Wheel[]): Promise<PackageIndex> {
  const index = await PackageIndex.start(...wheels)
  indexes.push(index)
  return index
}

interface Given extends Omit<SandglassOptions, 'environments'> {
  readonly environments?: SandglassOptions['environments']
}

/** A Sandglass on the engine local that installs from the index into the cache. */
export function open(
  index: PackageIndex,
  cacheDir: string,
  { environments, ...options }: Given = {},
): Promise<Sandglass> {
  return createSandglass({
    engine: 'local',
    poolSize: 1,
    ...options,
    environments: { cacheDir, index: index.address, ...environments },
  })
}

/** A package that needs {@link helper}. */
export const demo: Wheel = makeWheel({ name: 'demo', requires: ['helper>=1'] })
export const helper: Wheel = makeWheel({ name: 'helper' })

/** A script with a block of metadata that declares the package, and imports it. */
export const declares = (name: string): string =>
  `# /// script\n# dependencies = ["${name}"]\n# ///\nimport ${name}\nemit_result(1)`

/** A script whose result is the versions of {@link demo} and {@link helper}. */
export const IMPORT = 'import demo, helper\nemit_result([demo.VERSION, helper.VERSION])'
