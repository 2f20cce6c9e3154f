import { withoutCredentials } from '../../../src/environments/index-settings.ts'
import { skipFor } from '../required.ts'
import { noUv } from './fixture.ts'

/** The index that uv asks on this machine. */
const INDEX = process.env['UV_DEFAULT_INDEX'] ?? process.env['UV_INDEX_URL'] ?? 'https://pypi.org/simple'
const page = new URL('iniconfig/', INDEX.endsWith('/') ? INDEX : `${INDEX}/`)
const noIndex = await fetch(page, { signal: AbortSignal.timeout(10_000) }).then(
  ({ status }) => (status === 200 ? undefined : `${page.host} answers ${status}`),
  (error: unknown) => `${page.host} cannot be reached: ${withoutCredentials(String(error))}`,
)
if (noUv !== undefined) skipFor('uv', noUv)
if (noIndex !== undefined) skipFor('package index', noIndex)

/** True if packages cannot be installed from the index of this machine; the reason is printed. */
export const lacksIndex: boolean = noUv !== undefined || noIndex !== undefined
