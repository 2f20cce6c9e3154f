/**
 * Formats a JSON value as Python source, like Python's `repr`; `quote` is the preferred quote.
 */
export function toPythonLiteral(value: unknown, quote: '"' | "'" = "'"): string {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value === 'number') return pythonNumber(value)
  if (typeof value === 'string') return pythonString(value, quote)
  if (Array.isArray(value)) return `[${value.map((item) => toPythonLiteral(item, quote)).join(', ')}]`
  if (typeof value !== 'object') return 'None'
  return `{${Object.entries(value)
    .map(([key, item]) => `${pythonString(key, quote)}: ${toPythonLiteral(item, quote)}`)
    .join(', ')}}`
}

/** Maximum characters of a `Literal[…]`. */
const MAX_LITERAL_CHARS = 400

/** `Literal[…]` of values; undefined if Python does not allow one of them in it, or if it is too long. */
export function literalTypeOf(values: readonly unknown[]): string | undefined {
  if (values.length === 0 || !values.every(fitsLiteral)) return undefined
  const text = `Literal[${values.map((value) => toPythonLiteral(value, '"')).join(', ')}]`
  return text.length > MAX_LITERAL_CHARS ? undefined : text
}

/** True for a value that Python allows in `Literal[…]`. Callers add `None` to the union. */
export function fitsLiteral(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value)
}

function pythonNumber(value: number): string {
  // Python pads a small exponent to two digits.
  return JSON.stringify(value).replace(/e([+-])(\d)$/, 'e$10$2')
}

/** Uses the other quote if that saves escapes. */
function pythonString(text: string, preferred: '"' | "'"): string {
  const other = preferred === "'" ? '"' : "'"
  const quote = text.includes(preferred) && !text.includes(other) ? other : preferred
  const escaped = text.replaceAll(/[\\'"]|\p{C}|[\p{Zl}\p{Zp}]/gu, (found) => {
    if (found === "'" || found === '"') return found === quote ? `\\${found}` : found
    const named = NAMED.get(found)
    if (named !== undefined) return named
    const code = (found.codePointAt(0) ?? 0).toString(16)
    if (code.length <= 2) return `\\x${code.padStart(2, '0')}`
    return code.length <= 4 ? `\\u${code.padStart(4, '0')}` : `\\U${code.padStart(8, '0')}`
  })
  return `${quote}${escaped}${quote}`
}

const NAMED: ReadonlyMap<string, string> = new Map([
  ['\\', '\\\\'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
])
