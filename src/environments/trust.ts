import { SandglassError } from '../errors/index.ts'
import { loadKnownPackages } from './known-packages.ts'
import type { EnvironmentOptions, LockedPackage, ResolvedEnvironmentOptions } from './options.ts'
import { normalName } from './requirement.ts'

const MAX_NAMED = 10
const MAX_NAMED_TO_MODELS = 100

/** The packages that a script may not name. */
export function refusedOf(
  packages: readonly LockedPackage[],
  allow: NonNullable<EnvironmentOptions['allow']>,
): readonly LockedPackage[] {
  const isAllowed = ruleOf(allow)
  return packages.filter(({ name, version }) => !isAllowed({ name, version }))
}

/** The names of which `allow` admits no version. A function decides by version, so it refuses no name here. */
export function refusedNames(
  names: readonly string[],
  allow: NonNullable<EnvironmentOptions['allow']>,
): readonly LockedPackage[] {
  if (typeof allow === 'function') return []
  return refusedOf(
    names.map((name) => ({ name, version: '' })),
    allow,
  )
}

/**
 * Throws if there are refused packages.
 * @throws SandglassError `dependency_not_allowed`, naming them.
 */
export function assertNoneRefused(
  refused: readonly LockedPackage[],
  allow: NonNullable<EnvironmentOptions['allow']>,
): void {
  if (refused.length === 0) return
  const names = refused.slice(0, MAX_NAMED).map(({ name, version }) => `${name} ${version}`.trimEnd())
  const more = refused.length > MAX_NAMED ? ` and ${refused.length - MAX_NAMED} more` : ''
  throw new SandglassError(
    'dependency_not_allowed',
    `the script requires ${names.join(', ')}${more}, which environments.allow does not admit` +
      (allow === 'known'
        ? " ('known': only well-known packages): name them in dependencies yourself, or list them in environments.allow"
        : ': list them there, or use other packages'),
  )
}

/** Tells a model which packages its scripts may name, and how; empty if none. */
export function scriptPackagesText({
  fromScript,
  allow,
}: Pick<ResolvedEnvironmentOptions, 'fromScript' | 'allow'>): string {
  if (fromScript === 'off') return ''
  const kinds = { known: 'any well-known one of PyPI', any: 'any one of PyPI' } as const
  const which =
    typeof allow === 'string'
      ? kinds[allow]
      : typeof allow === 'function'
        ? 'some of PyPI'
        : `only ${allow.slice(0, MAX_NAMED_TO_MODELS).join(', ')}`
  const lines = 'the lines `# /// script`, `# dependencies = ["NAME"]` and `# ///`'
  return fromScript === 'declared'
    ? `Further packages (${which}) are installed if the script begins with ${lines}.`
    : `Further packages (${which}) are installed if the script imports them, or begins with ${lines}.`
}

function ruleOf(allow: NonNullable<EnvironmentOptions['allow']>): (wanted: LockedPackage) => boolean {
  if (typeof allow === 'function') return (wanted) => allow(wanted) === true
  if (allow === 'any') return () => true
  if (allow === 'known') {
    const known = loadKnownPackages()
    return ({ name }) => known.has(name)
  }
  const names = new Set(allow.map(normalName))
  return ({ name }) => names.has(name)
}
