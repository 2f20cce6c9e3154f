/** The named properties that are not undefined. */
export function definedOf<T extends object, K extends keyof T>(
  given: T,
  names: readonly K[],
): { [P in K]?: Exclude<T[P], undefined> } {
  const defined: Partial<Pick<T, K>> = {}
  for (const name of names) if (given[name] !== undefined) defined[name] = given[name]
  return defined as { [P in K]?: Exclude<T[P], undefined> }
}
