/**
 * Removes the middle of a text that is too long, like the harness, counted in characters of Python. Redaction
 * uses the gap to find the pieces of secrets at the cut.
 */
export function truncateLikeHarness(text: string, max: number): string {
  if (text.length <= max) return text
  const count = countCharacters(text)
  if (count <= max) return text
  const half = Math.floor(max / 2)
  const [head, tail] = [text.slice(0, endOfHead(text, half)), text.slice(startOfTail(text, half))]
  return `${head}\n... ${count - 2 * half} characters left out ...\n${tail}`
}

function countCharacters(text: string): number {
  let count = text.length
  for (let at = 1; at < text.length; at += 1) if (isPairedAt(text, at)) count -= 1
  return count
}

function endOfHead(text: string, characters: number): number {
  let end = 0
  for (let left = characters; left > 0; left -= 1) end += isPairedAt(text, end + 1) ? 2 : 1
  return end
}

function startOfTail(text: string, characters: number): number {
  let start = text.length
  for (let left = characters; left > 0; left -= 1) start -= isPairedAt(text, start - 1) ? 2 : 1
  return start
}

/** True if the unit at an index is the second half of a character. */
function isPairedAt(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800
}
