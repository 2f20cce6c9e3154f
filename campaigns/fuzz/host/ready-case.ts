import { ok } from 'node:assert/strict'
import { SandglassError } from '../../../src/errors/index.ts'
import { PROTOCOL_VERSION } from '../../../src/protocol/index.ts'
import { awaitReady } from '../../../src/sandbox/index.ts'
import { replayChannel } from '../../../src/testing/index.ts'
import { HARNESS_CORPUS } from '../corpus.ts'
import type { FuzzCase } from '../fuzz-case.ts'
import { mutatedLine, mutatedStream } from '../lines.ts'
import { cut } from '../mutate-bytes.ts'
import type { Random } from '../../../test/support/random.ts'

const READY = HARNESS_CORPUS.filter(({ type }) => type === 'ready')

/** A start succeeds with a `ready` of this protocol, or fails with an error that has a code. */
export function readyCase(random: Random): FuzzCase {
  const before = random.oneIn(2) ? mutatedStream(HARNESS_CORPUS, random, 3) : Buffer.alloc(0)
  const pieces = cut(Buffer.concat([before, mutatedLine(READY, random), Buffer.from('\n')]), random)
  return {
    property: 'a start ends with a sound ready frame or with a coded error',
    pieces,
    async check() {
      const { channel } = replayChannel(pieces, { start: 'at-once' })
      try {
        const ready = await awaitReady(channel, { timeoutMs: 10_000 })
        ok(ready.type === 'ready' && ready.protocol === PROTOCOL_VERSION)
      } catch (error) {
        ok(error instanceof SandglassError, `an error without a code: ${String(error)}`)
      }
    },
  }
}
