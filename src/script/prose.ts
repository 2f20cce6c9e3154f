import { PYTHON_KEYWORDS } from '../support/index.ts'

/** Characters of a line that are examined. The beginning is enough to recognise a statement. */
const MAX_EXAMINED = 300

/**
 * Returns the code of an answer that has no fences or tags: from the first statement, with the comments before it, to the
 * last. Text before and after that is not code. Undefined if there is no statement.
 */
export function findCodeInProse(text: string): string | undefined {
  const lines = text.split('\n')
  const statement = lines.findIndex(isStatement)
  if (statement === -1) return undefined
  let first = statement
  while (first > 0 && /^\s*(?:#|$)/.test(lines[first - 1] ?? '')) first -= 1
  let last = lines.findLastIndex(isStatement)
  while (last + 1 < lines.length && /^(?:\s|$|[)\]}"'#])/.test(lines[last + 1] ?? '')) last += 1
  return lines.slice(first, last + 1).join('\n')
}

/** Matches beginnings that only a statement has. */
const SURE =
  /^(?:>>>(?: |$)|import\s+\w+(?:\.\w+)*(?:\s*,|\s+as\s+\w+)?\s*(?:#|;|,|$)|from\s+[\w.]+\s+import\s|(?:async\s+)?def\s+\w+\s*\(|class\s+\w+\s*[(:]|@[A-Za-z_][\w.]*\s*(?:\(|$)|await\s+[\w.]+\(|raise(?:\s+[\w.]+\s*(?:\(|$)|$)|(?:pass|break|continue)$|[rRfFbBuU]?(?:"""|'''))/
const CALL = /^[A-Za-z_][\w.]*(?:\[[^\]]*\][\w.]*)*\(/
const BLOCK = /^(?:(?:async\s+)?(?:for|while|if|with|try)\b[^\n]*:|(?:assert|del)\s)/

/** True if a line begins with a Python statement that cannot be a sentence. */
function isStatement(given: string): boolean {
  const line = given.trimStart().slice(0, MAX_EXAMINED)
  if (line === '') return false
  if (SURE.test(line) || CALL.test(line)) return true
  if (BLOCK.test(line)) return !hasNeighbours(withoutStrings(line))
  return isAssignment(line)
}

function isAssignment(line: string): boolean {
  const bare = withoutStrings(line)
  const at = /(?<![=!<>:])=(?!=)/.exec(bare)?.index
  if (at === undefined) return false
  const target = bare.slice(0, at)
  return /^[A-Za-z_*([][\w.,*()[\]'"+\-/%&|^<>@: ]*$/.test(target) && !hasNeighbours(target)
}

function withoutStrings(line: string): string {
  return line.replaceAll(/"[^"]*"|'[^']*'/g, '""').replace(/#.*$/, '')
}

/** True if two names follow each other, as in a sentence but never in Python. */
function hasNeighbours(text: string): boolean {
  let before = ''
  for (const [word] of text.matchAll(/[A-Za-z_]\w*|[^\s\w]+|\d[\w.]*/g)) {
    const isName = /^\w/.test(word) && !PYTHON_KEYWORDS.has(word)
    if (isName && before === 'name') return true
    before = isName ? 'name' : 'other'
  }
  return false
}
