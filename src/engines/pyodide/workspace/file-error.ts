import { truncateLikeHarness } from '../../../protocol/index.ts'

const MAX_SHOWN = 400

/** A file operation that failed, with a code of the wire. */
export class FileError extends Error {
  override readonly name = 'FileError'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** The error of a path, which may hold a secret: it is shown as JSON writes it, which the host redacts. */
export function problem(code: string, path: string, reason: string): FileError {
  return new FileError(code, `${truncateLikeHarness(JSON.stringify(path), MAX_SHOWN)}: ${reason}`)
}
