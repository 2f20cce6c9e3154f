import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { digestOf } from './lock-file.ts'

/** The source of packages. */
export interface IndexSettings {
  /** The base address of the index that is searched first; it may hold credentials. */
  readonly base: string
  /** Arguments and variables of uv that follow from the options. An address may hold a password, so it is a variable. */
  readonly args: readonly string[]
  readonly variables: Readonly<Record<string, string>>
  /** Identifies the settings, without their credentials. Locks of other settings are not reused. */
  readonly digest: string
}

const PYPI = 'https://pypi.org/simple'
/** Variables that determine which packages uv finds. */
const SELECTION_VARIABLES: readonly string[] = [
  'UV_DEFAULT_INDEX',
  'UV_INDEX_URL',
  'UV_INDEX',
  'UV_EXTRA_INDEX_URL',
  'UV_FIND_LINKS',
  'UV_INDEX_STRATEGY',
  'UV_NO_INDEX',
  'UV_PRERELEASE',
  'UV_CONFIG_FILE',
]
/** Variables that determine how uv reaches an index. */
const CONNECTION_VARIABLES =
  /^(?:PATH|HOME|USER|LOGNAME|LANG|NETRC|XDG_CONFIG_HOME|XDG_RUNTIME_DIR|DBUS_SESSION_BUS_ADDRESS|SSL_CERT_(?:FILE|DIR)|(?:https?|all|no)_proxy|UV_INDEX_[A-Z0-9_]+_(?:USERNAME|PASSWORD)|UV_(?:KEYRING_PROVIDER|NATIVE_TLS|SYSTEM_CERTS|INSECURE_HOST|HTTP_TIMEOUT|HTTP_CONNECT_TIMEOUT|HTTP_RETRIES|CONCURRENT_\w+))$/i

/** The settings of this process for an index: options come before variables, variables before uv's own configuration. */
export function indexSettings(
  { index, wheels }: { readonly index?: string | undefined; readonly wheels?: string | undefined },
  env: NodeJS.ProcessEnv = process.env,
): IndexSettings {
  const base = index ?? env['UV_DEFAULT_INDEX'] ?? env['UV_INDEX_URL'] ?? PYPI
  const selection = SELECTION_VARIABLES.map((name) => withoutCredentials(env[name] ?? ''))
  return {
    base: addressOf(base),
    args: wheels === undefined ? [] : ['--find-links', resolve(wheels)],
    variables: index === undefined ? {} : { UV_DEFAULT_INDEX: index },
    digest: digestOf(
      [withoutCredentials(index ?? ''), wheels === undefined ? '' : resolve(wheels), selection, readConfiguration(env)],
      16,
    ),
  }
}

/** The environment of uv: only the variables for reaching and choosing an index. */
export function uvVariables(env: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => CONNECTION_VARIABLES.test(name) || SELECTION_VARIABLES.includes(name)),
  )
}

/** An address, or several, without user names and passwords. */
export function withoutCredentials(text: string): string {
  return text.replaceAll(/:\/\/[^/\s]{0,1000}@/g, '://')
}

/** uv writes a named index as `name=address`. */
function addressOf(base: string): string {
  return base.replace(/^[\w-]{1,100}=/, '')
}

/** The user's and the system's configuration of uv. Its secrets only enter a digest. */
function readConfiguration(env: NodeJS.ProcessEnv): string[] {
  const home = env['XDG_CONFIG_HOME'] ?? join(homedir(), '.config')
  return [join(home, 'uv', 'uv.toml'), '/etc/uv/uv.toml'].map((path) => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  })
}
