import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { SandglassError } from '../errors/index.ts'
import { formatValue, refuseUnknown } from '../support/index.ts'
import { isPackageName } from './requirement.ts'

/** A package of a lock, as {@link EnvironmentOptions.allow} sees it. */
export interface LockedPackage {
  /** In its normal form (PEP 503). */
  readonly name: string
  readonly version: string
}

/** The progress of an installation. */
export interface InstallProgress {
  /**
   * `installer`: uv is downloaded, once. `resolve`: versions are chosen. `download`: wheels arrive and are unpacked. `done`: the
   * environment can be used.
   */
  readonly phase: 'installer' | 'resolve' | 'download' | 'done'
  readonly packages: number
  /** Bytes of wheels that arrived. Of a wheel that is still arriving, an estimate from the bytes that were unpacked. */
  readonly bytes: number
  /** Bytes of all wheels whose sizes the index reports; 0 before they are known. */
  readonly totalBytes: number
}

/** Options of the environments: directories of packages that sandboxes import from. */
export interface EnvironmentOptions {
  /**
   * The directory of the cache. Default: the variable SANDGLASS_CACHE_DIR, else `/var/cache/sandglass` for root, else
   * `sandglass` in the user's cache directory. Sandboxes must be able to read it.
   */
  readonly cacheDir?: string
  /** The program uv. Default: the one on `PATH` if its version fits, else a private copy from the index. */
  readonly uv?: string
  /** The base address of the package index. Default: uv's own settings, else PyPI. */
  readonly index?: string
  /** A directory of wheels that is used in addition to the index. */
  readonly wheels?: string
  /**
   * The address of the directory with the packages that Pyodide itself distributes (numpy, pandas, …), such as
   * `https://cdn.jsdelivr.net/pyodide/v314.0.7/full/`; for the engine `pyodide`. Each must have the SHA-256 that the npm package
   * lists. Default: the variable SANDGLASS_PYODIDE_PACKAGES, else none.
   */
  readonly pyodidePackages?: string
  /**
   * Ignores packages that were uploaded after this time: a date, or an age such as `7 days`. Default: `7 days` for packages
   * that a script names, no limit for those that the host names. `none`: no limit for scripts either. An index that reports
   * no upload times needs it.
   */
  readonly excludeNewer?: string
  /**
   * The packages that a script may bring itself. Default `off`: a script that declares dependencies (PEP 723) is refused.
   * `declared`: those of its block. `imports`: also those of the modules that it imports.
   */
  readonly fromScript?: 'off' | 'declared' | 'imports'
  /**
   * The packages that a script may name, and their dependencies. Default `known`: the packages of the shipped
   * list of well-known ones. It is checked before anything is downloaded.
   */
  readonly allow?: 'known' | 'any' | readonly string[] | ((wanted: LockedPackage) => boolean)
  /** Called while packages are installed. */
  readonly onProgress?: (progress: InstallProgress) => void
  /** Use what is in the cache and ask no index. Default false. */
  readonly offline?: boolean
  /** The limit of the cache in bytes; above it, the least recently used environments are removed. No environment may unpack to more. Default 10 GiB. */
  readonly maxBytes?: number
  /** Days after which an unused environment is removed. Default 90. */
  readonly maxAgeDays?: number
  /** The time for the installation of one environment, in milliseconds. Default 600,000. */
  readonly timeoutMs?: number
}

/** Options with their defaults. */
export interface ResolvedEnvironmentOptions extends EnvironmentOptions {
  readonly cacheDir: string
  readonly fromScript: 'off' | 'declared' | 'imports'
  readonly allow: NonNullable<EnvironmentOptions['allow']>
  readonly offline: boolean
  readonly maxBytes: number
  readonly maxAgeDays: number
  readonly timeoutMs: number
}

const NAMES: readonly (keyof EnvironmentOptions)[] = [
  'cacheDir',
  'uv',
  'index',
  'wheels',
  'pyodidePackages',
  'excludeNewer',
  'fromScript',
  'allow',
  'onProgress',
  'offline',
  'maxBytes',
  'maxAgeDays',
  'timeoutMs',
]
const FROM_SCRIPT: readonly unknown[] = ['off', 'declared', 'imports'] satisfies EnvironmentOptions['fromScript'][]
/** The value of `excludeNewer` without any limit. */
export const NO_LIMIT_OF_AGE = 'none'
const EXCLUDE_NEWER =
  /^(?:none|\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d))?|\d{1,4} (?:hours?|days?|weeks?))$/
const MAX_TIMEOUT_MS = 86_400_000
const GiB = 1024 ** 3

/**
 * Checks the options and fills in the defaults.
 * @throws TypeError for an unknown option; SandglassError `invalid_request` for a value that cannot be used.
 */
export function resolveEnvironmentOptions(given: EnvironmentOptions = {}): ResolvedEnvironmentOptions {
  if (typeof given !== 'object' || given === null) throw invalid('environments', given, 'an object')
  refuseUnknown('environments', given, NAMES)
  const { excludeNewer, fromScript = 'off', allow = 'known', offline = false } = given
  for (const name of ['cacheDir', 'uv', 'index', 'wheels'] as const) {
    const value = given[name]
    if (value !== undefined && (typeof value !== 'string' || value === '' || value.startsWith('-'))) {
      throw invalid(`environments.${name}`, value, name === 'index' ? 'an address' : 'a path')
    }
  }
  if (excludeNewer !== undefined && !(typeof excludeNewer === 'string' && EXCLUDE_NEWER.test(excludeNewer))) {
    throw invalid(
      'environments.excludeNewer',
      excludeNewer,
      'a date such as 2026-01-31, an age such as 7 days, or none',
    )
  }
  const pyodidePackages = given.pyodidePackages ?? process.env['SANDGLASS_PYODIDE_PACKAGES']
  if (pyodidePackages !== undefined && pyodidePackages !== '' && !isAddress(pyodidePackages)) {
    throw invalid('environments.pyodidePackages', pyodidePackages, 'an address (https://…, http://… or file:///…)')
  }
  if (!FROM_SCRIPT.includes(fromScript))
    throw invalid('environments.fromScript', fromScript, 'off, declared or imports')
  if (!(allow === 'known' || allow === 'any' || typeof allow === 'function' || Array.isArray(allow))) {
    throw invalid('environments.allow', allow, "'known', 'any', a list of names or a function")
  }
  if (Array.isArray(allow)) allow.forEach(assertName)
  return {
    ...given,
    ...(pyodidePackages === undefined || pyodidePackages === '' ? {} : { pyodidePackages }),
    cacheDir: resolve(given.cacheDir ?? defaultCacheDir()),
    ...(given.uv?.includes('/') === true ? { uv: resolve(given.uv) } : {}),
    fromScript,
    allow,
    offline,
    maxBytes: inRange('maxBytes', given.maxBytes ?? 10 * GiB, 0, Number.MAX_SAFE_INTEGER),
    maxAgeDays: inRange('maxAgeDays', given.maxAgeDays ?? 90, 0, 36_500),
    timeoutMs: inRange('timeoutMs', given.timeoutMs ?? 600_000, 1, MAX_TIMEOUT_MS),
  }
}

/** The default directory of the cache for this user. */
export function defaultCacheDir(env: NodeJS.ProcessEnv = process.env): string {
  const named = env['SANDGLASS_CACHE_DIR']
  if (named !== undefined && named !== '') return named
  // Sandboxes of root have other uids, which cannot enter its home directory.
  if (process.getuid?.() === 0) return '/var/cache/sandglass'
  const base = env['XDG_CACHE_HOME']
  return join(base !== undefined && base.startsWith('/') ? base : join(homedir(), '.cache'), 'sandglass')
}

function assertName(name: unknown): void {
  if (typeof name === 'string' && isPackageName(name)) return
  throw invalid('environments.allow', name, 'the name of a package, without a version')
}

function inRange(name: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && value >= min && value <= max) return value
  throw invalid(`environments.${name}`, value, `a number from ${min} to ${max}`)
}

function isAddress(text: unknown): boolean {
  return typeof text === 'string' && ['https:', 'http:', 'file:'].includes(URL.parse(text)?.protocol ?? '')
}

function invalid(name: string, value: unknown, expected: string): SandglassError {
  return new SandglassError('invalid_request', `${name}: ${formatValue(value)} is not ${expected}`)
}
