const MAX_DEPTH = 200

/**
 * Compares two results by their JSON value. The order of keys does not count, the order of lists does; 1 and 1.0 are
 * equal, NaN equals itself, and a property that is `undefined` counts as absent. Never throws: below a depth of 200,
 * as in a circular value, two values are equal only if they are the same object.
 */
export function sameData(a: unknown, b: unknown): boolean {
  return isSame(a, b, 0)
}

function isSame(a: unknown, b: unknown, depth: number): boolean {
  if (Object.is(a, b) || a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null || depth > MAX_DEPTH) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    return a.every((item, index) => isSame(item, b[index], depth + 1))
  }
  const [left, right] = [definedEntriesOf(a), definedEntriesOf(b)]
  if (left.size !== right.size) return false
  for (const [key, value] of left) {
    if (!right.has(key) || !isSame(value, right.get(key), depth + 1)) return false
  }
  return true
}

function definedEntriesOf(value: object): Map<string, unknown> {
  return new Map(Object.entries(value).filter(([, item]) => item !== undefined))
}
