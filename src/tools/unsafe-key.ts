/**
 * True if a value read from JSON has the key `__proto__` at any depth: code that copies such an object field by
 * field would change the prototype of the copy. Works without recursion.
 */
export function holdsProtoKey(value: unknown): boolean {
  const rest: unknown[] = [value]
  while (rest.length > 0) {
    const item = rest.pop()
    if (typeof item !== 'object' || item === null) continue
    if (!Array.isArray(item) && Object.hasOwn(item, '__proto__')) return true
    for (const child of Object.values(item)) if (typeof child === 'object' && child !== null) rest.push(child)
  }
  return false
}
