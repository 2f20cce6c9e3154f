import { createHash } from 'node:crypto'

/** What stands for a prompt or a script where its text does not: SHA-256, in hexadecimal. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
