/** The bytes between newlines; the last item is the bytes after the last newline. */
export function splitLines(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = []
  for (let at = 0; at <= bytes.length;) {
    const end = bytes.indexOf('\n', at)
    lines.push(bytes.subarray(at, end === -1 ? bytes.length : end))
    at = end === -1 ? bytes.length + 1 : end + 1
  }
  return lines
}

/** Parses a line with `JSON.parse` alone; undefined if it is not JSON. */
export function naiveJson(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8').trim())
  } catch {
    return undefined
  }
}
