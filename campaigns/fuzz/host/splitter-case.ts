import { ok, strictEqual } from 'node:assert/strict'
import { LineSplitter, LineTooLongError } from '../../../src/protocol/index.ts'
import { HARNESS_CORPUS } from '../corpus.ts'
import type { FuzzCase } from '../fuzz-case.ts'
import { mutatedStream } from '../lines.ts'
import { cut } from '../mutate-bytes.ts'
import type { Random } from '../../../test/support/random.ts'

/** The lines are the bytes between newlines wherever the bytes are cut, and at most the bound is buffered. */
export function splitterCase(random: Random): FuzzCase {
  const bytes = random.oneIn(3) ? fewSymbols(random) : mutatedStream(HARNESS_CORPUS, random)
  const bound = random.oneIn(2) ? 1 << 20 : random.between(0, Math.max(1, bytes.length))
  const pieces = cut(bytes, random)
  return {
    property: 'lines do not depend on where the bytes are cut, and the bound holds',
    pieces,
    check() {
      const { lines, tooLong } = split(pieces, bound)
      const want = bytes.toString('latin1').split('\n')
      const rest = want.pop() ?? ''
      const first = want.findIndex((line) => line.length > bound)
      const complete = first === -1 ? want : want.slice(0, first)
      strictEqual(tooLong, first !== -1 || rest.length > bound)
      strictEqual(lines.join('\n'), complete.join('\n'))
      strictEqual(lines.length, complete.length)
    },
  }
}

function split(pieces: readonly Uint8Array[], bound: number): { lines: string[]; tooLong: boolean } {
  const splitter = new LineSplitter(bound)
  const lines: string[] = []
  try {
    for (const piece of pieces) {
      for (const line of splitter.push(piece)) lines.push(line.toString('latin1'))
      ok(splitter.pendingBytes <= bound, `${splitter.pendingBytes} bytes are buffered, ${bound} are allowed`)
    }
  } catch (error) {
    if (!(error instanceof LineTooLongError)) throw error
    strictEqual(splitter.pendingBytes, 0)
    return { lines, tooLong: true }
  }
  return { lines, tooLong: false }
}

function fewSymbols(random: Random): Buffer {
  return Buffer.from(Array.from({ length: random.below(200) }, () => random.pick([0x0a, 0x0d, 0x00, 0x61, 0xc3, 0xa9])))
}
