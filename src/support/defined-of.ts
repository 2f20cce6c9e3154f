/** The named properties that are not undefined. */
export function definedOf<T extends object, K extends keyof T>(
  given: T,
  names: readonly K[],
): { [P in K]?: Exclude<T[P], undefined> } {
  const entries = names.filter((name) => given[name] !== undefined).map((name) => [name, given[name]])
  return Object.fromEntries(entries) as { [P in K]?: Exclude<T[P], undefined> }
}
