import { LineSplitter, LineTooLongError } from '../protocol/index.ts'

/** A line of input, by its number from 1. */
export type InputLine =
  | { readonly number: number; readonly text: string }
  | { readonly number: number; readonly problem: 'too-long' | 'not-utf8' }

const NEWLINE = 0x0a

/**
 * Splits a stream into lines, one at a time. Blank lines are left out; a line that is too long or not UTF-8 is reported
 * without its text.
 */
export async function* inputLines(
  input: AsyncIterable<Uint8Array>,
  maxLineBytes: number,
): AsyncGenerator<InputLine, void, void> {
  const splitter = new LineSplitter(maxLineBytes)
  let number = 1
  let skipping = false
  let last: Uint8Array = Buffer.alloc(0)
  for await (const chunk of input) {
    for (const piece of splitAfterNewlines(chunk)) {
      const complete = piece.at(-1) === NEWLINE
      if (!skipping) {
        const line = take(splitter, piece, number)
        skipping = !complete && line !== undefined && 'problem' in line
        if (line !== undefined) yield line
      } else if (complete) {
        skipping = false
      }
      if (complete) number += 1
      last = piece
    }
  }
  if (last.length > 0 && last.at(-1) !== NEWLINE && !skipping) {
    const line = take(splitter, Buffer.from('\n'), number)
    if (line !== undefined) yield line
  }
}

/** Splits a chunk after each newline. */
function* splitAfterNewlines(chunk: Uint8Array): Generator<Uint8Array, void, void> {
  let start = 0
  while (start < chunk.length) {
    const end = chunk.indexOf(NEWLINE, start)
    const stop = end === -1 ? chunk.length : end + 1
    yield chunk.subarray(start, stop)
    start = stop
  }
}

function take(splitter: LineSplitter, piece: Uint8Array, number: number): InputLine | undefined {
  try {
    for (const line of splitter.push(piece)) {
      const text = new TextDecoder('utf-8', { fatal: true }).decode(line)
      return text.trim() === '' ? undefined : { number, text }
    }
    return undefined
  } catch (error) {
    return { number, problem: error instanceof LineTooLongError ? 'too-long' : 'not-utf8' }
  }
}
