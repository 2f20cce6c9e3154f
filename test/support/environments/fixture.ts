import { chmodSync, linkSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { indexSettings } from '../../../src/environments/index-settings.ts'
import { findUv } from '../../../src/environments/uv.ts'
import { messageOf } from '../../../src/errors/index.ts'

/** One copy of uv for all tests on this machine, downloaded once from PyPI. */
const UV_CACHE = join(tmpdir(), 'sandglass-test-uv')

/** The program uv, or the reason why there is none. */
export const uv: { readonly path: string } | { readonly missing: string } = await findUv({
  cacheDir: UV_CACHE,
  offline: false,
  index: indexSettings({}),
}).then(
  (path) => ({ path }),
  (error: unknown) => ({ missing: messageOf(error) }),
)

/** The reason to skip tests that install packages; undefined where they can run. */
export const noUv: string | undefined = 'missing' in uv ? uv.missing : undefined

/** A private cache with uv, which all users may enter. */
export function makeCacheDir(): { readonly path: string; [Symbol.dispose](): void } {
  const above = mkdtempSync(join(tmpdir(), 'sandglass-env-'))
  chmodSync(above, 0o755)
  const path = join(above, 'cache')
  if ('path' in uv) {
    mkdirSync(join(path, 'bin'), { recursive: true, mode: 0o755 })
    linkSync(uv.path, join(path, 'bin', basename(uv.path)))
  }
  return { path, [Symbol.dispose]: () => rmSync(above, { recursive: true, force: true }) }
}
