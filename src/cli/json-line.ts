/**
 * Characters that JSON allows but that are unsafe in a line: U+0085, U+2028 and U+2029 end a line for some readers
 * (Python's `splitlines`), and the other control characters from U+007F on drive terminals.
 */
const UNSAFE = /[\u007F-\u009F\u2028\u2029]/g

/** A value as one line of JSON, its `\n` included. */
export function jsonLine(value: unknown): string {
  return `${JSON.stringify(value).replace(UNSAFE, escapeCharacter)}\n`
}

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
