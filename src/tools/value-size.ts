/** The approximate length of a value as JSON. It counts up to a limit and no further, so it ends for any value. */
export function sizeUpTo(value: unknown, limit: number): number {
  let size = 0
  walk(value, (item) => {
    size += sizeOf(item, limit - size)
    return size < limit
  })
  return Math.min(size, limit)
}

/** The text of a value without its items and fields. */
function sizeOf(item: unknown, limit: number): number {
  if (typeof item === 'string') return item.length + 3
  if (typeof item !== 'object' || item === null) return 2
  if (Array.isArray(item)) return 3
  if (ArrayBuffer.isView(item)) return 3 + item.byteLength
  let size = 3
  for (const key of Object.keys(item)) {
    if (size > limit) break
    size += key.length + 4
  }
  return size
}

/** The approximate memory of a value of JSON up to a limit, in bytes: its texts, objects, lists and fields. */
export function memoryOf(value: unknown, limit: number = Number.POSITIVE_INFINITY): number {
  let bytes = 0
  walk(value, (item) => {
    bytes += 16
    if (typeof item === 'string') bytes += item.length
    else if (Array.isArray(item)) bytes += 32 + 8 * item.length
    else if (typeof item === 'object' && item !== null) {
      bytes += 32
      if (!ArrayBuffer.isView(item)) for (const key of Object.keys(item)) bytes += 8 + key.length
    }
    return bytes < limit
  })
  return Math.min(bytes, limit)
}

/**
 * Visits a value and all values in it, until `visit` returns false; then it returns false. It copies no list and keeps one place
 * for each level, because values can have a million items. Bytes have no items.
 */
function walk(value: unknown, visit: (item: unknown) => boolean): boolean {
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
    if (at < list.length) above.push({ list, at })
    list = Array.isArray(item) ? item : Object.values(item)
    at = 0
  }
}

/** True for a value with more than this number of values in it. */
export function holdsMoreThan(value: unknown, limit: number): boolean {
  let count = 0
  return !walk(value, () => {
    count += 1
    return count <= limit
  })
}

/** More values than an answer may have: an answer with more is refused when it is sent. */
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
