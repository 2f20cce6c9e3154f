import { describe, expect, test } from 'vitest'
import { withoutCredentials } from '../../../src/environments/index-settings.ts'
import { createSandglass } from '../../../src/index.ts'
import { makeCacheDir, noUv } from '../../support/environments/fixture.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { skipFor } from '../../support/required.ts'

const { skip } = await requireLocalEngine()
if (noUv !== undefined) skipFor('uv', noUv)
/** The index that uv asks on this machine. */
const INDEX = process.env['UV_DEFAULT_INDEX'] ?? process.env['UV_INDEX_URL'] ?? 'https://pypi.org/simple'
const page = new URL('iniconfig/', INDEX.endsWith('/') ? INDEX : `${INDEX}/`)
const noIndex = await fetch(page, { signal: AbortSignal.timeout(10_000) }).then(
  ({ status }) => (status === 200 ? undefined : `${page.host} answers ${status}`),
  (error: unknown) => `${page.host} cannot be reached: ${withoutCredentials(String(error))}`,
)
if (noIndex !== undefined) skipFor('package index', noIndex)

describe.skipIf(skip || noUv !== undefined || noIndex !== undefined)('the package index of this machine', () => {
  test('has a small package, which is installed and imported', async () => {
    using cache = makeCacheDir()
    await using sandglass = await createSandglass({
      engine: 'local',
      poolSize: 1,
      dependencies: ['iniconfig'],
      environments: { cacheDir: cache.path },
    })
    const result = await sandglass.run('import iniconfig\nemit_result(iniconfig.IniConfig.__name__)')
    expect(result).toMatchObject({ error: null, finalData: 'IniConfig', environment: { cached: false } })
    expect(Object.keys(result.environment?.packages ?? {})).toEqual(['iniconfig'])
  }, 60_000)
})
