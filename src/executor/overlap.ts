/**
 * The length of the longest end of `text` that is a beginning of `wanted`. Takes time in proportion to the shorter of
 * the two, whatever they hold.
 */
export function overlap(text: string, wanted: string): number {
  if (wanted === '') return 0
  const at = text.indexOf(wanted.charAt(0), Math.max(0, text.length - wanted.length))
  if (at === -1) return 0
  const tail = text.slice(at)
  if (wanted.startsWith(tail)) return tail.length
  // Knuth, Morris and Pratt: `tail` is not a beginning itself, so that `matched` stays below its length.
  const borders = bordersOf(wanted.slice(0, tail.length))
  let matched = 0
  for (let i = 0; i < tail.length; i += 1) matched = extended(wanted, borders, matched, tail.charCodeAt(i))
  return matched
}

/** For each beginning of a text, the length of its longest proper end that is a beginning, too. */
function bordersOf(text: string): Int32Array {
  const borders = new Int32Array(text.length)
  for (let i = 1; i < text.length; i += 1) {
    borders[i] = extended(text, borders, borders[i - 1] ?? 0, text.charCodeAt(i))
  }
  return borders
}

/** How much of `wanted` is matched once `unit` follows what was matched. */
function extended(wanted: string, borders: Int32Array, matched: number, unit: number): number {
  let length = matched
  while (length > 0 && wanted.charCodeAt(length) !== unit) length = borders[length - 1] ?? 0
  return wanted.charCodeAt(length) === unit ? length + 1 : length
}
