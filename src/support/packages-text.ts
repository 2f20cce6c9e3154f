/** An installed package in prompts and reports. */
export interface NamedPackage {
  readonly name: string
  /** Empty if it is not known yet. */
  readonly version: string
}

const MAX_PACKAGES = 100

/** A sentence for a model that names installed packages; empty without any. */
export function packagesText(packages: readonly NamedPackage[] = []): string {
  if (packages.length === 0) return ''
  const names = packages.slice(0, MAX_PACKAGES).map(({ name, version }) => `${name} ${version}`.trimEnd())
  if (packages.length > MAX_PACKAGES) names.push(`and ${packages.length - MAX_PACKAGES} more`)
  return `Installed packages: ${names.join(', ')}.`
}
