import { indexSettings, withoutCredentials } from './index-settings.ts'
import { digestOf } from './lock-file.ts'
import type { ResolvedEnvironmentOptions } from './options.ts'
import type { Requirement } from './requirement.ts'
import { isTarget, type PythonTarget } from './target.ts'

/** A request with every setting that decides its answer, so that an update can repeat it. It holds no secrets. */
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
  /** Undefined for a function: it ends with its process, and `known` stands in for it. */
  readonly allow?: 'known' | 'any' | readonly string[] | undefined
}

/** False for what an older version or a damaged disk left in place of a declaration. */
export function isDeclaration(value: unknown): value is Declaration {
  const { target, requirements, host } = (value ?? {}) as Partial<Record<keyof Declaration, unknown>>
  return isTarget(target) && Array.isArray(requirements) && Array.isArray(host)
}

/** The part of a request that decides the answer. */
interface Wish {
  readonly target: PythonTarget
  readonly requirements: readonly Requirement[]
  readonly fromScript?: boolean | undefined
  readonly host?: readonly Requirement[] | undefined
}

/** To be incremented when the content of environments changes for a reason that their requirements do not show. */
export const LAYOUT = 1
const SCRIPT_EXCLUDE_NEWER = '7 days'

/** Puts a request and the options together. */
export function declarationOf(options: ResolvedEnvironmentOptions, wish: Wish): Declaration {
  const { index, wheels, pyodidePackages, allow } = options
  const { target, requirements, fromScript = false, host = [] } = wish
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

/** The options with which a declaration is asked for again. Credentials of an index come from `present`. */
export function optionsOf(
  { index, wheels, excludeNewer, pyodidePackages, allow = 'known' }: Declaration,
  present: ResolvedEnvironmentOptions,
): ResolvedEnvironmentOptions {
  const { cacheDir, uv, fromScript, offline, maxBytes, maxAgeDays, timeoutMs, onProgress } = present
  const same = present.index !== undefined && withoutCredentials(present.index) === index
  const own = { uv, onProgress, wheels, excludeNewer, pyodidePackages, index: same ? present.index : index }
  const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined))
  return { ...given, cacheDir, fromScript, offline, maxBytes, maxAgeDays, timeoutMs, allow }
}

/** The key of a declaration and of uv's settings in this process. Requests with equal keys have the same answer. */
export function requestKeyOf(declaration: Declaration, options: ResolvedEnvironmentOptions): string {
  const { target, requirements, excludeNewer = null, pyodidePackages = null } = declaration
  const { digest } = indexSettings(options)
  return digestOf([LAYOUT, target, requirements.toSorted(), digest, excludeNewer, pyodidePackages], 32)
}
