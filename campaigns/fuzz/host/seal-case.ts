import { ok, strictEqual } from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { Opener, SEAL_KEY_BYTES } from '../../../src/sandbox/seal.ts'
import { HARNESS_CORPUS } from '../corpus.ts'
import type { FuzzCase } from '../fuzz-case.ts'
import { mutatedStream } from '../lines.ts'
import { cut, mutatedBytes } from '../mutate-bytes.ts'
import type { Random } from '../../../test/support/random.ts'

/** A sealed channel delivers only authenticated data: a prefix of what the harness sent, however the bytes were changed. */
export function sealCase(random: Random): FuzzCase {
  const key = random.bytes(SEAL_KEY_BYTES)
  const contents = Array.from({ length: random.between(1, 6) }, () =>
    mutatedStream(HARNESS_CORPUS, random, 2).subarray(0, 65_536),
  )
  const sealed = contents.map((content, count) => seal(key, count, content))
  const changed = random.oneIn(2)
  const bytes = changed ? forged(sealed, random) : Buffer.concat(sealed)
  const pieces = cut(bytes, random)
  return {
    property: 'a sealed channel delivers only a prefix of the sealed data',
    pieces,
    check() {
      const opener = new Opener(key)
      const opened: Uint8Array[] = []
      try {
        for (const piece of pieces) for (const content of opener.push(piece)) opened.push(content)
      } catch (error) {
        ok(changed, `an unchanged channel was refused: ${String(error)}`)
      }
      const got = Buffer.concat(opened).toString('hex')
      const sent = Buffer.concat(contents).toString('hex')
      ok(sent.startsWith(got), 'the channel delivered data that was not sealed')
      if (!changed) strictEqual(got, sent)
    },
  }
}

function seal(key: Buffer, count: number, content: Buffer): Buffer {
  const number = Buffer.alloc(8)
  number.writeBigUInt64BE(BigInt(count))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(content.length)
  const tag = createHmac('sha256', key).update(number).update(content).digest().subarray(0, 16)
  return Buffer.concat([length, tag, content])
}

function forged(sealed: readonly Buffer[], random: Random): Buffer {
  switch (random.below(4)) {
    case 0: // a repeated piece
      return Buffer.concat([...sealed, random.pick(sealed)])
    case 1: // in another order
      return Buffer.concat(sealed.toReversed())
    case 2: // one piece missing
      return Buffer.concat(sealed.toSpliced(random.below(sealed.length), 1))
    default:
      return mutatedBytes(Buffer.concat(sealed), Buffer.concat(sealed.toReversed()), random)
  }
}
