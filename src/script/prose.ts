/** Of a line so much is looked at: what a statement begins with is near its start. */
const LOOKED_AT = 300

const KEYWORDS = new Set(
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield'.split(
    ' ',
  ),
)

/**
 * The code in an answer that sets it apart by nothing: from its first statement, and the comments before that, to its
 * last. Words before and behind are not code; neither is a text without any statement.
 */
export function codeInProse(text: string): string | undefined {
  const lines = text.split('\n')
  const statement = lines.findIndex(isStatement)
  if (statement === -1) return undefined
  let first = statement
  while (first > 0 && /^\s*(?:#|$)/.test(lines[first - 1] ?? '')) first -= 1
  let last = lines.findLastIndex(isStatement)
  while (last + 1 < lines.length && /^(?:\s|$|[)\]}"'#])/.test(lines[last + 1] ?? '')) last += 1
  return lines.slice(first, last + 1).join('\n')
}

const SURE =
  /^(?:>>>(?: |$)|import\s+\w+(?:\.\w+)*(?:\s*,|\s+as\s+\w+)?\s*(?:#|;|,|$)|from\s+[\w.]+\s+import\s|(?:async\s+)?def\s+\w+\s*\(|class\s+\w+\s*[(:]|@[A-Za-z_][\w.]*\s*(?:\(|$)|await\s+[\w.]+\(|raise(?:\s+[\w.]+\s*(?:\(|$)|$)|(?:pass|break|continue)$|[rRfFbBuU]?(?:"""|'''))/
const CALL = /^[A-Za-z_][\w.]*(?:\[[^\]]*\][\w.]*)*\(/
const BLOCK = /^(?:(?:async\s+)?(?:for|while|if|with|try)\b[^\n]*:|(?:assert|del)\s)/

/** Whether a line without its indentation begins a statement of Python that no sentence looks like. */
function isStatement(given: string): boolean {
  const line = given.trimStart().slice(0, LOOKED_AT)
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

/** Whether two words stand side by side that Python would have something between: the mark of a sentence. */
function hasNeighbours(text: string): boolean {
  let before = ''
  for (const [word] of text.matchAll(/[A-Za-z_]\w*|[^\s\w]+|\d[\w.]*/g)) {
    const isName = /^\w/.test(word) && !KEYWORDS.has(word)
    if (isName && before === 'name') return true
    before = isName ? 'name' : 'other'
  }
  return false
}
