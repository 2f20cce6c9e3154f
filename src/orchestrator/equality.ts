const MAX_DEPTH = 200

/**
 * Whether two results are the same (requirement OR-04): by value, as JSON has it. The order of keys does not count, that
 * of lists does; 1 and 1.0 are one number, NaN is itself; `undefined` in an object is as if it were not there. Never
 * throws: where a value leads back to itself, or goes deeper than 200, two are the same only if they are one object.
 */
export function sameData(a: unknown, b: unknown): boolean {
  return same(a, b, 0)
}

function same(a: unknown, b: unknown, depth: number): boolean {
  if (Object.is(a, b) || a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null || depth > MAX_DEPTH) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    return a.every((item, index) => same(item, b[index], depth + 1))
  }
  const [left, right] = [entriesOf(a), entriesOf(b)]
  if (left.size !== right.size) return false
  for (const [key, value] of left) {
    if (!right.has(key) || !same(value, right.get(key), depth + 1)) return false
  }
  return true
}

function entriesOf(value: object): Map<string, unknown> {
  return new Map(Object.entries(value).filter(([, item]) => item !== undefined))
}
