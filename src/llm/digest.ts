import { createHash } from 'node:crypto'

/** The SHA-256 of a prompt or a script, in hexadecimal. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
