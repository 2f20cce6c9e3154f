import { settledUnitsOf, unitsOf } from './unit-reader.ts'

/** Minimum units of a form that occurs only after a backslash or a `%`: shorter forms occur in ordinary words. */
const MIN_BEHIND = 8
/** Encoded forms of longer values are not searched for: a form takes memory for each of its characters. */
const MAX_ENCODED = 16 * 1024
/** Shorter lines of a value, such as `"a": 1`, occur in ordinary texts. */
const MIN_LINE = 8

/**
 * The forms of a value, as units (see {@link UnitReader}): the value itself first, then its lines, its bytes, hexadecimal, and
 * base64 as a part of longer data. Without duplicates.
 */
export function formsOf(value: string): readonly string[] {
  const plain = plainForms(value)
  if (value.length > MAX_ENCODED) return [...new Set(plain)]
  return [...new Set([...plain, ...linesOf(value).flatMap(plainForms), ...hexForms(value), ...base64Forms(value)])]
}

function plainForms(text: string): string[] {
  const forms = [text, latinOf(text), latinOf(reprOf(text))].flatMap((form) => [form, withoutEntities(form)])
  return [...new Set(forms)].flatMap(unitsInPlace)
}

/** The lines of a multi-line value: parsers such as `SyntaxError` and `configparser.ParsingError` quote single lines in their errors. */
function linesOf(value: string): string[] {
  const lines = value.split(/[\r\n]+/)
  return lines.length === 1 ? [] : lines.map((line) => line.trim()).filter((line) => line.length >= MIN_LINE)
}

/** The bytes of a text, each as a character: `b'…'` and URLs encode text in this way if it is not ASCII. */
function latinOf(value: string): string {
  return Buffer.from(value).toString('latin1')
}

/** The text with escaped ampersands, so that entities are not decoded: a URL encodes `&amp;` as `%26amp%3B`. */
function withoutEntities(text: string): string {
  return text.replaceAll('&', '%26')
}

/**
 * The units of a text, also if adjacent text changes its escapes: after a character that turns its beginning into an escape
 * (`C:\nabc`), and before text that completes an escape at its end (`…%4` and `1`).
 */
function unitsInPlace(text: string): string[] {
  const own = unitsOf(text)
  const behind = ['\\', '%'].flatMap((lead) =>
    [unitsOf(lead + text), settledUnitsOf(lead + text)].map((units) => units.trimStart()),
  )
  return [own, settledUnitsOf(text), ...behind.filter((units) => units !== own && units.length >= MIN_BEHIND)]
}

function hexForms(value: string): string[] {
  const hex = Buffer.from(value).toString('hex')
  return [hex, hex.toUpperCase()]
}

/** Base64 of the unchanged value, and of its escaped forms in JSON and in Python's repr. */
function base64Forms(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1)
  const ascii = json.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const repr = reprOf(value)
  const quoted = repr.replaceAll("'", "\\'")
  return [...new Set([value, json, ascii, repr, quoted])].flatMap((text) => base64Cores(Buffer.from(text)).map(unitsOf))
}

/** The value as Python's repr writes it, without quotes. */
function reprOf(value: string): string {
  return value.replaceAll(/[\\\p{C}\p{Z}]/gu, escapeLikeRepr)
}

function escapeLikeRepr(character: string): string {
  const code = character.codePointAt(0) ?? 0
  const hex = code.toString(16)
  if (code > 0xffff) return `\\U${hex.padStart(8, '0')}`
  if (code > 0xff) return `\\u${hex.padStart(4, '0')}`
  return SHORT_ESCAPES.get(character) ?? `\\x${hex.padStart(2, '0')}`
}

const SHORT_ESCAPES: ReadonlyMap<string, string> = new Map([
  [' ', ' '],
  ['\\', '\\\\'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
])

/**
 * The part of base64 that does not depend on the bytes around the value: for each of the three offsets within a group of
 * three bytes, the characters that hold only bits of the value. Up to 4 bits of its first and last byte are in other characters.
 */
function base64Cores(bytes: Buffer): string[] {
  return [0, 1, 2].map((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
    return encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
  })
}
