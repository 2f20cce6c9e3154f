import { indexSettings, withoutCredentials } from './index-settings.ts'
import { digestOf } from './lock-file.ts'
import type { ResolvedEnvironmentOptions } from './options.ts'
import type { Requirement } from './requirement.ts'
import { isTarget, type PythonTarget } from './target.ts'

/** A request with every setting that determines its resolution, so that an update can repeat it. It holds no secrets. */
export interface Declaration {
  readonly target: PythonTarget
  readonly requirements: readonly string[]
  readonly fromScript: boolean
  /** The requirements that the host named. */
  readonly host: readonly string[]
  readonly excludeNewer?: string | undefined
  readonly index?: string | undefined
  readonly wheels?: string | undefined
  readonly pyodidePackages?: string | undefined
  /** Undefined for a function, which ends with its process; an update uses `known` instead. */
  readonly allow?: 'known' | 'any' | readonly string[] | undefined
}

/** False for a declaration of an older version or a damaged one. */
export function isDeclaration(value: unknown): value is Declaration {
  const { target, requirements, host } = (value ?? {}) as Partial<Record<keyof Declaration, unknown>>
  return isTarget(target) && Array.isArray(requirements) && Array.isArray(host)
}

/** The part of a request that determines the resolution. */
interface DeclaredRequest {
  readonly target: PythonTarget
  readonly requirements: readonly Requirement[]
  readonly fromScript?: boolean | undefined
  readonly host?: readonly Requirement[] | undefined
}

/** Increment it when the layout of environments changes. */
export const LAYOUT = 1
const SCRIPT_EXCLUDE_NEWER = '7 days'

/** Makes a declaration from a request and the options. */
export function declarationOf(options: ResolvedEnvironmentOptions, request: DeclaredRequest): Declaration {
  const { index, wheels, pyodidePackages, allow } = options
  const { target, requirements, fromScript = false, host = [] } = request
  return {
    target,
    requirements: requirements.map(({ text }) => text),
    fromScript,
    host: host.map(({ text }) => text),
    excludeNewer: options.excludeNewer ?? (fromScript ? SCRIPT_EXCLUDE_NEWER : undefined),
    index: index === undefined ? undefined : withoutCredentials(index),
    wheels,
    pyodidePackages,
    allow: typeof allow === 'function' ? undefined : allow,
  }
}

/** The options with which a declaration is resolved again. Credentials of an index come from `current`. */
export function optionsOf(
  { index, wheels, excludeNewer, pyodidePackages, allow = 'known' }: Declaration,
  current: ResolvedEnvironmentOptions,
): ResolvedEnvironmentOptions {
  const { cacheDir, uv, fromScript, offline, maxBytes, maxAgeDays, timeoutMs, onProgress } = current
  const same = current.index !== undefined && withoutCredentials(current.index) === index
  const own = { uv, onProgress, wheels, excludeNewer, pyodidePackages, index: same ? current.index : index }
  const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined))
  return { ...given, cacheDir, fromScript, offline, maxBytes, maxAgeDays, timeoutMs, allow }
}

/** The key of a declaration and of uv's settings in this process. Requests with equal keys have the same resolution. */
export function requestKeyOf(declaration: Declaration, options: ResolvedEnvironmentOptions): string {
  const { target, requirements, excludeNewer = null, pyodidePackages = null } = declaration
  const { digest } = indexSettings(options)
  return digestOf([LAYOUT, target, requirements.toSorted(), digest, excludeNewer, pyodidePackages], 32)
}
