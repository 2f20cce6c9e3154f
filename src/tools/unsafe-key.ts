import { walk } from '../support/index.ts'

/**
 * True if a value read from JSON has the key `__proto__` at any depth: code that copies such an object field by
 * field would change the prototype of the copy. Works without recursion.
 */
export function holdsProtoKey(value: unknown): boolean {
  return !walk(value, (item) => typeof item !== 'object' || item === null || !Object.hasOwn(item, '__proto__'))
}
