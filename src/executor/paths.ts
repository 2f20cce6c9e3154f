/** The longest path that a system call accepts. */
const MAX_PATH_BYTES = 4096
const MAX_PART_BYTES = 255

/**
 * The reason that a path cannot name a file in a workspace, or undefined if it can. The same rule applies to files that are sent and
 * collected: relative, `/` between the parts, no empty part, no `.` or `..`, no NUL.
 * @param maxBytes the maximum length. A script can nest directories deeper than one system call accepts.
 */
export function pathProblem(path: string, maxBytes: number = MAX_PATH_BYTES): string | undefined {
  if (path === '') return 'it is empty'
  if (path.includes('\0')) return 'it holds a NUL'
  if (!path.isWellFormed()) return 'it holds a lone surrogate'
  if (path.startsWith('/')) return 'it is absolute; give it relative to the workspace'
  if (Buffer.byteLength(path) > maxBytes) return `it is longer than ${maxBytes} bytes`
  for (const part of path.split('/')) {
    if (part === '') return 'it has an empty part'
    if (part === '.' || part === '..') return `it has the part "${part}"`
    if (Buffer.byteLength(part) > MAX_PART_BYTES) return `it has a part longer than ${MAX_PART_BYTES} bytes`
  }
  return undefined
}
