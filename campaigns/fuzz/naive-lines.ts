/** The bytes between newlines; the bytes behind the last one are the last of the list. */
export function between(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = []
  for (let at = 0; at <= bytes.length;) {
    const end = bytes.indexOf('\n', at)
    lines.push(bytes.subarray(at, end === -1 ? bytes.length : end))
    at = end === -1 ? bytes.length + 1 : end + 1
  }
  return lines
}

/** Lines as JSON, by the parser of JavaScript alone; undefined for what is none. */
export function naiveJson(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8').trim())
  } catch {
    return undefined
  }
}
