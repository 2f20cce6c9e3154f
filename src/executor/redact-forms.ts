/**
 * The ways in which a text may be written by what prints, stores or sends it, itself first: as JSON, in a URL, as a part
 * of something longer in base64. Each once.
 */
export function formsOf(value: string): readonly string[] {
  const forms = [value, ...jsonForms(value), ...urlForms(value.toWellFormed()), ...base64Forms(Buffer.from(value))]
  return [...new Set(forms)]
}

/**
 * With non-ASCII characters as they are, which is also how Python's repr writes line breaks and backslashes, and as
 * `json.dumps` escapes them; each with `/` and with `\/`.
 */
function jsonForms(value: string): string[] {
  const plain = JSON.stringify(value).slice(1, -1)
  const ascii = plain.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return [plain, ascii].flatMap((text) => [text, text.replaceAll('/', '\\/')])
}

/** What encoders of URLs disagree on: which of these they leave alone, and whether hex is written in capitals. */
function urlForms(value: string): string[] {
  const component = encodeURIComponent(value)
  const strict = component.replaceAll(/[!*'()]/g, hexOf)
  const forms = [
    component,
    // Python's quote: with and without '/'.
    strict,
    strict.replaceAll('%2F', '/'),
    // Forms: Python's quote_plus, and URLSearchParams.
    strict.replaceAll('%20', '+'),
    component.replaceAll(/[!'()~]/g, hexOf).replaceAll('%20', '+'),
  ]
  return forms.flatMap((text) => [text, text.replaceAll(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase())])
}

function hexOf(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}

/**
 * What base64 of any bytes around the value has in common: of each of the three places where it can stand within a group
 * of three bytes, the characters that hold bits of the value alone. Its first and last byte show up to 4 bits beside.
 */
function base64Forms(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
    const core = encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
    return [core, core.replaceAll('+', '-').replaceAll('/', '_')]
  })
}
