/** The approximate length of a value as JSON, counted up to a limit, so that it terminates for any value. */

export function sizeUpTo(value: unknown, limit: number): number {
  let size = 0
  walk(
    value,
    (item) => {
      if (typeof item === 'string') size += item.length + 3
      else if (typeof item !== 'object' || item === null) size += 2
      else size += 3 + (ArrayBuffer.isView(item) ? item.byteLength : 0)
      return size < limit
    },
    (key) => {
      size += key.length + 4
      return size < limit
    },
  )
  return Math.min(size, limit)
}

/** The approximate memory of a value of JSON up to a limit, in bytes: its texts, objects, lists and fields. */
export function memoryOf(value: unknown, limit: number = Number.POSITIVE_INFINITY): number {
  let bytes = 0
  walk(
    value,
    (item) => {
      bytes += 16
      if (typeof item === 'string') bytes += item.length
      else if (Array.isArray(item)) bytes += 32 + 8 * item.length
      else if (typeof item === 'object' && item !== null) bytes += 32
      return bytes < limit
    },
    (key) => {
      bytes += 8 + key.length
      return bytes < limit
    },
  )
  return Math.min(bytes, limit)
}

type Visit<T> = (item: T) => boolean

const ANY_KEY: Visit<string> = () => true

/**
 * Visits a value, all values in it and their keys, in any order, until a visit returns false; then it returns false. It copies no
 * list and keeps one position for each level, because values can have a million items. Bytes have no items.
 */
export function walk(value: unknown, visit: Visit<unknown>, visitKey: Visit<string> = ANY_KEY): boolean {
  const above: { readonly list: readonly unknown[]; readonly at: number }[] = []
  let list: readonly unknown[] = [value]
  let at = 0
  for (;;) {
    if (at >= list.length) {
      const place = above.pop()
      if (place === undefined) return true
      ;({ list, at } = place)
      continue
    }
    const item = list[at]
    at += 1
    if (!visit(item)) return false
    if (typeof item !== 'object' || item === null || ArrayBuffer.isView(item)) continue
    const items = Array.isArray(item) ? item : visitFields(item, visit, visitKey)
    if (items === undefined) return false
    if (items.length === 0) continue
    if (at < list.length) above.push({ list, at })
    list = items
    at = 0
  }
}

const NOTHING: readonly object[] = []

/** Visits the keys, and the fields that hold no further values; returns the other fields, or undefined to stop. */
function visitFields(item: object, visit: Visit<unknown>, visitKey: Visit<string>): readonly object[] | undefined {
  let inner: object[] | undefined
  // Creates no list of fields and reads the keys once: a value can have a million objects, and an object a million keys.
  for (const key in item) {
    if (!visitKey(key)) return undefined
    const field: unknown = item[key as keyof typeof item]
    if (typeof field === 'object' && field !== null) (inner ??= []).push(field)
    else if (!visit(field)) return undefined
  }
  return inner ?? NOTHING
}

/** True for a value with more than this number of values in it. */
export function holdsMoreThan(value: unknown, limit: number): boolean {
  let count = 0
  return !walk(value, () => {
    count += 1
    return count <= limit
  })
}

/** Maximum number of visited values. An answer with more values is refused when it is sent. */
const MAX_VALUES = 1024 * 1024

/** True for bytes, and for a value that holds them; ends for any value. */
export function holdsBytes(value: unknown): boolean {
  let count = 0
  let isFound = false
  walk(value, (item) => {
    count += 1
    isFound = ArrayBuffer.isView(item)
    return !isFound && count < MAX_VALUES
  })
  return isFound
}
