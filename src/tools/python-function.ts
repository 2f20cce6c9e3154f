/** A parameter of a function in Python source. */
export interface PythonParameter {
  readonly name: string
  /** `positional` and `keyword` mean positional-only and keyword-only. */
  readonly kind: 'plain' | 'positional' | 'keyword'
  readonly annotation: string | undefined
  readonly default: string | undefined
}

/** The header and docstring of a function in Python source. */
export interface PythonFunction {
  readonly name: string
  readonly isAsync: boolean
  /** True if a decorator may change the arguments. */
  readonly isDecorated: boolean
  /** `[T]`, or empty. */
  readonly typeParameters: string
  readonly params: readonly PythonParameter[]
  /** `*args`, with its annotation. */
  readonly rest: string | undefined
  /** `**more`, with its annotation. */
  readonly more: string | undefined
  readonly returns: string | undefined
  /** Empty if there is none. */
  readonly docstring: string
}

/**
 * Returns the functions at the top level of Python source, in order. If a header does not end, the source is invalid: that function
 * is undefined and the last entry. Nothing is run.
 */
export function parsePythonFunctions(source: string): ReadonlyMap<string, PythonFunction | undefined> {
  const found = new Map<string, PythonFunction | undefined>()
  let depth = 0
  let decorated = false
  let lineStarts = true
  for (let at = 0; at < source.length;) {
    if (lineStarts && depth === 0) {
      const head = matchAt(DEF, source, at)
      if (head !== undefined) {
        const [all = '', word, name = ''] = head
        found.delete(name)
        at += all.length
        const made = parseFunction(source, at, { name, isAsync: word !== undefined, isDecorated: decorated })
        found.set(name, made)
        if (made === undefined) break
        decorated = lineStarts = false
        continue
      }
      if (/[^\s#]/.test(source[at] ?? '')) decorated = source[at] === '@'
    }
    const char = source[at] ?? ''
    lineStarts = char === '\n'
    if (OPEN.has(char)) depth += 1
    if (CLOSE.has(char)) depth = Math.max(0, depth - 1)
    at = skipToken(source, at)
  }
  return found
}

const DEF = /(?:(async)[ \t]+)?def[ \t]+([\p{XID_Start}_]\p{XID_Continue}*)/uy
const OPEN: ReadonlySet<string> = new Set('([{')
const CLOSE: ReadonlySet<string> = new Set(')]}')
const WORD = /[\p{XID_Start}_]\p{XID_Continue}*/uy
const QUOTE = /"""|'''|"|'/y
const BLANK = /(?:\s|\\\r?\n)*/y
const BLANK_OR_COMMENT = /(?:\s|\\\r?\n|#[^\n]*)*/y

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(text) ?? undefined
}

/** The index after the string, comment or character that begins at `at`. */
function skipToken(source: string, at: number): number {
  const quote = matchAt(QUOTE, source, at)?.[0]
  if (quote !== undefined) return skipString(source, at + quote.length, quote)
  if (source[at] !== '#') return at + 1
  const end = source.indexOf('\n', at)
  return end === -1 ? source.length : end
}

/** The index after a string. A quote after a backslash does not end it, even in a raw string. */
function skipString(source: string, from: number, quote: string): number {
  for (let at = from; at < source.length; at += 1) {
    if (source[at] === '\\') at += 1
    else if (source.startsWith(quote, at)) return at + quote.length
    else if (source[at] === '\n' && quote.length === 1) return at
  }
  return source.length
}

interface Piece {
  /** Without comments, on one line. */
  readonly text: string
  /** The index of the stop. */
  readonly end: number
  readonly stop: string
}

/** The text before the first of `stops` outside brackets, strings and `lambda` headers; undefined if there is none. */
function readUntil(source: string, from: number, stops: string): Piece | undefined {
  const parts: string[] = []
  let depth = 0
  let lambdas = 0
  for (let at = from; at < source.length;) {
    const char = source[at] ?? ''
    if (depth === 0 && lambdas === 0 && stops.includes(char))
      return { text: parts.join('').trim(), end: at, stop: char }
    const word = matchAt(WORD, source, at)?.[0]
    if (word === 'lambda' && depth === 0) lambdas += 1
    if (char === ':' && depth === 0) lambdas = Math.max(0, lambdas - 1)
    if (OPEN.has(char)) depth += 1
    if (CLOSE.has(char)) depth -= 1
    if (depth < 0) return undefined
    const next = word === undefined ? skipToken(source, at) : at + word.length
    if (/\s/.test(char)) {
      if (parts.at(-1) !== ' ') parts.push(' ')
    } else if (char !== '#' && !/^\\\r?\n/.test(source.slice(at, at + 3))) parts.push(source.slice(at, next))
    at = next
  }
  return undefined
}

type Begun = Pick<PythonFunction, 'name' | 'isAsync' | 'isDecorated'>

function parseFunction(source: string, from: number, begun: Begun): PythonFunction | undefined {
  let at = skipBlank(source, from)
  let typeParameters = ''
  if (source[at] === '[') {
    const inner = readUntil(source, at + 1, ']')
    if (inner === undefined) return undefined
    typeParameters = `[${inner.text}]`
    at = skipBlank(source, inner.end + 1)
  }
  if (source[at] !== '(') return undefined
  const pieces: string[] = []
  let piece: Piece | undefined
  do {
    piece = readUntil(source, at + 1, ',)')
    if (piece === undefined) return undefined
    pieces.push(piece.text)
    at = piece.end
  } while (piece.stop === ',')
  at = skipBlank(source, at + 1)
  let returns: string | undefined
  if (source.startsWith('->', at)) {
    const annotation = readUntil(source, at + 2, ':')
    if (annotation === undefined) return undefined
    returns = annotation.text
    at = annotation.end
  }
  if (source[at] !== ':') return undefined
  return { ...begun, typeParameters, ...parametersOf(pieces), returns, docstring: readDocstring(source, at + 1) }
}

function skipBlank(source: string, from: number): number {
  return from + (matchAt(BLANK, source, from)?.[0].length ?? 0)
}

function parametersOf(pieces: readonly string[]): Pick<PythonFunction, 'params' | 'rest' | 'more'> {
  const params: PythonParameter[] = []
  const lastByPosition = pieces.lastIndexOf('/')
  let rest: string | undefined
  let more: string | undefined
  let kind: PythonParameter['kind'] = 'plain'
  for (const [index, piece] of pieces.entries()) {
    if (piece === '/') continue
    if (piece.startsWith('**')) more = piece
    else if (piece.startsWith('*')) {
      if (piece !== '*') rest = piece
      kind = 'keyword'
    } else if (piece !== '') params.push(parameterOf(piece, index < lastByPosition ? 'positional' : kind))
  }
  return { params, rest, more }
}

function parameterOf(piece: string, kind: PythonParameter['kind']): PythonParameter {
  // A stop is appended, so that the text after the last `=` or `:` is read like the rest.
  const ended = `${piece};`
  const name = readUntil(ended, 0, ':=;')
  const after = name?.stop === ':' ? readUntil(ended, name.end + 1, '=;') : undefined
  const { stop, end } = after ?? name ?? { stop: ';', end: 0 }
  return {
    name: name?.text ?? piece,
    kind,
    annotation: after?.text,
    default: stop === '=' ? ended.slice(end + 1, -1).trim() : undefined,
  }
}

const PREFIX = /([rRuU]?)(?=["'])/y

function readDocstring(source: string, from: number): string {
  const at = from + (matchAt(BLANK_OR_COMMENT, source, from)?.[0].length ?? 0)
  const prefix = matchAt(PREFIX, source, at)?.[1]
  if (prefix === undefined) return ''
  const quote = matchAt(QUOTE, source, at + prefix.length)?.[0] ?? ''
  const start = at + prefix.length + quote.length
  const text = source.slice(start, skipString(source, start, quote) - quote.length)
  return cleanDocstring(prefix.toLowerCase() === 'r' ? text : unescape(text))
}

/** Resolves common escapes; others stay. */
function unescape(text: string): string {
  return text.replaceAll(/\\(\r?\n|[nt"'\\])/g, (_, escaped: string) =>
    escaped === 'n' ? '\n' : escaped === 't' ? '\t' : escaped.endsWith('\n') ? '' : escaped,
  )
}

/** Like `inspect.cleandoc`: removes the common indentation of all lines but the first. */
function cleanDocstring(text: string): string {
  const [first = '', ...others] = text.replaceAll('\r\n', '\n').replaceAll('\t', '        ').split('\n')
  const indents = others.filter((line) => line.trim() !== '').map((line) => line.length - line.trimStart().length)
  const common = indents.length === 0 ? 0 : indents.reduce((least, indent) => Math.min(least, indent))
  return [first.trimStart(), ...others.map((line) => line.slice(common).trimEnd())].join('\n').trim()
}
