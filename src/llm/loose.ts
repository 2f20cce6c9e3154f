/** A field of an untrusted value, or undefined. */
export function field(given: unknown, name: string): unknown {
  return typeof given === 'object' && given !== null && name in given ? Reflect.get(given, name) : undefined
}

/** A number, or undefined. */
export function numberIn(given: unknown): number | undefined {
  return typeof given === 'number' ? given : undefined
}

/** A text, or undefined. */
export function stringIn(given: unknown): string | undefined {
  return typeof given === 'string' ? given : undefined
}

/** The text of a message, which is a string, or a list of parts of which some are text. */
export function textIn(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part: unknown) => {
      if (typeof part === 'string') return part
      return field(part, 'type') === 'text' ? (stringIn(field(part, 'text')) ?? '') : ''
    })
    .join('')
}
