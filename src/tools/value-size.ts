/** The approximate length of a value as JSON. It counts up to a limit and no further, so it ends for any value. */
export function sizeUpTo(value: unknown, limit: number): number {
  let size = 0
  const rest: unknown[] = [value]
  while (rest.length > 0 && size < limit) {
    const item = rest.pop()
    if (typeof item === 'string') size += item.length + 3
    else if (typeof item !== 'object' || item === null) size += 2
    else size += sizeOfFields(item, rest, limit - size)
  }
  return Math.min(size, limit)
}

/** Adds the items or fields to `rest`; returns the size of everything else. */
function sizeOfFields(item: object, rest: unknown[], limit: number): number {
  if (Array.isArray(item)) {
    // Each item counts 2 at least, so no more of them are needed.
    for (let index = 0; index < Math.min(item.length, limit); index += 1) rest.push(item[index])
    return 3
  }
  // Each byte would be a field.
  if (ArrayBuffer.isView(item)) return 3 + item.byteLength
  let size = 3
  for (const key of Object.keys(item)) {
    if (size > limit) break
    size += key.length + 4
    rest.push((item as Record<string, unknown>)[key])
  }
  return size
}

/** The approximate memory of a value of JSON, in bytes: its texts, objects, lists and fields. */
export function memoryOf(value: unknown): number {
  let bytes = 0
  const rest: unknown[] = [value]
  while (rest.length > 0) {
    const item = rest.pop()
    bytes += 16
    if (typeof item === 'string') bytes += item.length
    else if (Array.isArray(item)) {
      bytes += 32 + 8 * item.length
      for (const field of item) rest.push(field)
    } else if (typeof item === 'object' && item !== null) {
      bytes += 32
      for (const [key, field] of Object.entries(item)) {
        bytes += 8 + key.length
        rest.push(field)
      }
    }
  }
  return bytes
}

/** True for a value with more than this number of values in it. */
export function holdsMoreThan(value: unknown, limit: number): boolean {
  let count = 0
  const rest: unknown[] = [value]
  while (rest.length > 0) {
    const item = rest.pop()
    count += 1
    if (count + rest.length > limit) return true
    if (typeof item !== 'object' || item === null) continue
    for (const field of Array.isArray(item) ? item.slice(0, limit + 1) : Object.values(item)) rest.push(field)
  }
  return false
}

/** More values than an answer may have: an answer with more is refused when it is sent. */
const MAX_VALUES = 1024 * 1024

/** True for bytes, and for a value that holds them; ends for any value. */
export function holdsBytes(value: unknown): boolean {
  const found: unknown[] = [value]
  for (let at = 0; at < found.length; at += 1) {
    const item = found[at]
    if (ArrayBuffer.isView(item)) return true
    if (typeof item !== 'object' || item === null) continue
    for (const field of Array.isArray(item) ? item : Object.values(item)) {
      if (found.length >= MAX_VALUES) break
      found.push(field)
    }
  }
  return false
}
