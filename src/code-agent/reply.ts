const [CODE, LIBRARIES] = ['execution-code', 'pip-dependencies-to-install']
const CDATA = { open: '<![CDATA[', close: ']]>' }

/** Maximum characters of the list of packages. A longer list counts as a mistake of the model. */
const MAX_LIBRARIES_CHARS = 64 * 1024

/** The content of a reply of a model. */
export type AgentReply =
  /** A script: run it byte for byte, with these libraries. */
  | { readonly kind: 'code'; readonly code: string; readonly libraries: readonly string[] }
  /** An answer: run nothing. */
  | { readonly kind: 'answer'; readonly text: string }
  /** Code whose boundaries are unclear: run nothing. `feedback` is for the model. */
  | { readonly kind: 'unclear'; readonly feedback: string }

/**
 * Reads a reply by the contract of {@link codeAgentInstructions}. The code is everything from the first opening tag to the
 * last closing one, so a closing tag in a string is part of it. One CDATA section or code fence around it is removed.
 * Linear in the length of the reply; never throws.
 */
export function parseReply(reply: string): AgentReply {
  const feedback = problemOf(reply)
  if (feedback !== undefined) return { kind: 'unclear', feedback }
  const code = getExecutionCodeContent(reply)
  if (code === null) return { kind: 'answer', text: reply }
  return { kind: 'code', code, libraries: getLibrariesContent(reply) }
}

/** The Python in `<execution-code>`; null if there is none, or if it is unclear ({@link parseReply} says why). */
export function getExecutionCodeContent(reply: string): string | null {
  if (problemOf(reply) !== undefined) return null
  const content = findBetween(reply, CODE, 'lastIndexOf')
  if (content === undefined) return null
  const code = unwrap(content)
  return code.trim() === '' ? null : code
}

/**
 * The names in `<pip-dependencies-to-install>`, separated by commas or line breaks; `pandas>=2,<3` is one name. They are not
 * checked: executors refuse names that are not requirements.
 */
export function getLibrariesContent(reply: string): readonly string[] {
  const content = findBetween(outsideOfCode(reply), LIBRARIES, 'indexOf')
  if (content === undefined || content.length > MAX_LIBRARIES_CHARS) return []
  const libraries: string[] = []
  for (const part of splitOutsideBrackets(decodeEntities(unwrap(content)))) {
    const text = part.trim()
    if (text === '') continue
    // A comma also separates the bounds of one version.
    if (/^[<>=!~]/.test(text) && libraries.length > 0) libraries.push(`${libraries.pop() ?? ''},${text}`)
    else libraries.push(text)
  }
  return libraries
}

/** Splits at line breaks, and at commas outside of brackets, which hold extras. */
function splitOutsideBrackets(text: string): readonly string[] {
  const parts: string[] = []
  let start = 0
  let isInside = false
  for (let at = 0; at < text.length; at += 1) {
    const one = text[at]
    if (one === '[' || one === ']') isInside = one === '['
    if (one !== '\n' && (one !== ',' || isInside)) continue
    parts.push(text.slice(start, at))
    start = at + 1
    isInside = false
  }
  return [...parts, text.slice(start)]
}

/** The text after the code; the whole reply if there is no code. */
export function getTextAfterLastExecutionCode(reply: string): string {
  const at = reply.lastIndexOf(`</${CODE}>`)
  return at === -1 ? reply : reply.slice(at + `</${CODE}>`.length)
}

function problemOf(reply: string): string | undefined {
  const ofCode = problemOfTag(reply, CODE, reply.lastIndexOf(`</${CODE}>`))
  if (ofCode !== undefined || !reply.includes(`<${CODE}>`)) return ofCode
  const around = outsideOfCode(reply)
  const ofLibraries = problemOfTag(around, LIBRARIES, around.indexOf(`</${LIBRARIES}>`))
  if (ofLibraries !== undefined) return ofLibraries
  return (findBetween(around, LIBRARIES, 'indexOf')?.length ?? 0) > MAX_LIBRARIES_CHARS
    ? `Your reply names more packages in <${LIBRARIES}> than can be installed. Nothing was run. Name only those that the script imports.`
    : undefined
}

/** @param closing the place of the closing tag, -1 for none. */
function problemOfTag(text: string, tag: string, closing: number): string | undefined {
  const [open, close] = [`<${tag}>`, `</${tag}>`]
  const first = text.indexOf(open)
  if (first === -1 && closing === -1) return undefined
  const remedy = 'Nothing was run. Put everything between the two tags, once.'
  if (first === -1) return `Your reply has ${close} but no ${open} before it. ${remedy}`
  if (closing < first) return `Your reply has ${open} but no ${close} after it. ${remedy}`
  if (!text.includes(open, first + 1)) return undefined
  return (
    `Your reply has ${open} more than once, so it is unclear what it means. ${remedy} Where a script itself needs the tag, ` +
    `write it as "<" + "${tag}>".`
  )
}

/** The reply without its code, which may hold any text. */
function outsideOfCode(reply: string): string {
  const [from, to] = [reply.indexOf(`<${CODE}>`), reply.lastIndexOf(`</${CODE}>`)]
  return from === -1 || to < from ? reply : `${reply.slice(0, from)}\n${reply.slice(to)}`
}

/** The text between the first opening tag and the first or last closing tag; undefined without both. */
function findBetween(reply: string, tag: string, closing: 'indexOf' | 'lastIndexOf'): string | undefined {
  const open = reply.indexOf(`<${tag}>`)
  if (open === -1) return undefined
  const from = open + tag.length + 2
  const to = closing === 'indexOf' ? reply.indexOf(`</${tag}>`, from) : reply.lastIndexOf(`</${tag}>`)
  return to < from ? undefined : reply.slice(from, to)
}

/** The content of one CDATA section or of one code fence that encloses everything; else the text as it is. */
function unwrap(content: string): string {
  const text = content.trim()
  if (text.startsWith(CDATA.open) && text.endsWith(CDATA.close))
    return text.slice(CDATA.open.length, -CDATA.close.length)
  const [fence = ''] = /^`{3,}/.exec(text) ?? []
  const firstEnd = text.indexOf('\n')
  const isFenced =
    fence !== '' && firstEnd !== -1 && text.endsWith(`\n${fence}`) && text.length > firstEnd + fence.length
  return isFenced ? text.slice(firstEnd + 1, -fence.length) : content
}

/** Decodes the XML entities that occur in version bounds. */
function decodeEntities(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}
