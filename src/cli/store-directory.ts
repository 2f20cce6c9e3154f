import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Given } from './args.ts'
import { UsageError } from './failure.ts'

/** The directory of the store: that of `--store` or of the environment, or the user's default. @throws UsageError */
export function storeDirectory(given: Given, env: NodeJS.ProcessEnv): string {
  const named = given.last('--store') ?? env['SANDGLASS_STORE_DIR']
  if (named === '') throw new UsageError('invalid_request', '--store: the path is empty')
  if (named !== undefined) return named
  // The specification of XDG_DATA_HOME says to ignore a relative path.
  const { XDG_DATA_HOME: data = '', HOME: home = '' } = env
  const base = isAbsolute(data) ? data : join(isAbsolute(home) ? home : homedir(), '.local/share')
  return join(base, 'sandglass/store')
}
