import type { ToolParameter, ToolSignature } from '../protocol/index.ts'
import { truncateLine } from './constraints.ts'
import type { PythonClass } from './python-classes.ts'
import { toPythonLiteral } from './python-literal.ts'

/** The text of one tool for a model, without classes: `def search(query: str) -> list[Order]:` and its docstring. */
export function stubOf(signature: ToolSignature): string {
  const { name, params, more, returns, doc } = signature
  const given = [...params.map(parameterText), ...(more ? ['**more'] : [])].join(', ')
  return textOf(`def ${name}(${given}) -> ${returns}:`, doc)
}

/** The header of a function and its docstring. */
export function textOf(head: string, doc: string): string {
  const lines = doc.split('\n').map((line) => `    ${line}`.trimEnd())
  // In a raw docstring, a backslash does not start an escape.
  const quotes = doc.includes('\\') ? 'r"""' : '"""'
  return [head, `    ${quotes}`, ...lines, '    """'].join('\n')
}

/** A tool for {@link stubsOf}. */
export interface Stubbed {
  readonly signature: ToolSignature
  readonly classes: readonly PythonClass[]
  /** The text for a model, if it is not made from the signature. */
  readonly stub?: string
}

const SUMMARY_CHARS = 100

/**
 * The text of all tools for a model, in at most `maxChars` characters: the full text if it fits; else one line for each,
 * and the full text of as many as fit, in order. If not even the names fit, the last line says how many are missing.
 */
export function stubsOf(tools: readonly Stubbed[], maxChars: number = Number.POSITIVE_INFINITY): string {
  const all = renderAll(tools)
  if (all.length <= maxChars) return all
  const head = `# ${tools.length} functions. describe_tool("name") returns the signature and description of any of them.`
  const lines = listTools(tools, maxChars - head.length - 1)
  const text = [head, ...lines].join('\n')
  if (lines.length < tools.length) return text.slice(0, Math.max(0, maxChars))
  return expandListing(tools, [head, ...lines], maxChars)
}

function parameterText(param: ToolParameter): string {
  const head = `${param.name}: ${param.type}`
  if (param.required) return head
  if (param.default !== undefined) return `${head} = ${toPythonLiteral(param.default)}`
  return `${head} = ${param.nullable ? '...' : 'None'}`
}

function renderAll(tools: readonly Stubbed[]): string {
  const written = new Set<string>()
  return tools.map((tool) => renderWithClasses(tool, written)).join('\n\n')
}

/** A stub after those of its classes that are not written yet. */
function renderWithClasses({ signature, classes, stub }: Stubbed, written: Set<string>): string {
  const fresh = classes.filter(({ name }) => !written.has(name))
  for (const { name } of fresh) written.add(name)
  return [...fresh.map(({ source }) => source), stub ?? stubOf(signature)].join('\n\n')
}

/** One line for each tool, with its summary, or only its name if summaries do not fit; the list is cut if names do not fit. */
function listTools(tools: readonly Stubbed[], maxChars: number): string[] {
  const summaries = tools.map(({ signature }) => formatSummary(signature))
  if (lengthOf(summaries) <= maxChars) return summaries
  const names = tools.map(({ signature }) => `# ${signature.name}`)
  if (lengthOf(names) <= maxChars) return names
  let left = maxChars - '# … and 0000000 more'.length - 1
  const kept = names.filter((line) => (left -= line.length + 1) >= 0)
  return [...kept, `# … and ${names.length - kept.length} more`].slice(0, names.length - 1)
}

/** The head and the lines, with as many lines as fit replaced by full text at the end. */
function expandListing(tools: readonly Stubbed[], [head = '', ...lines]: readonly string[], maxChars: number): string {
  const written = new Set<string>()
  const listed: string[] = []
  const full: string[] = []
  let left = maxChars - head.length - lengthOf(lines) - 1
  for (const [index, tool] of tools.entries()) {
    const line = lines[index] ?? ''
    const known = new Set(written)
    const text = renderWithClasses(tool, known)
    const cost = text.length + 2 - (line.length + 1)
    if (cost > left) {
      listed.push(line)
      continue
    }
    left -= cost
    full.push(text)
    for (const name of known) written.add(name)
  }
  return [[head, ...listed].join('\n'), ...full].join('\n\n')
}

function lengthOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + line.length + 1, 0)
}

function formatSummary({ name, params, more, doc }: ToolSignature): string {
  const names = [
    ...params.map((param) => (param.required ? param.name : `${param.name}=…`)),
    ...(more ? ['**more'] : []),
  ]
  const first = truncateLine(doc.split('\n\n')[0] ?? '', SUMMARY_CHARS)
  return `# ${name}(${names.join(', ')}): ${first}`
}
