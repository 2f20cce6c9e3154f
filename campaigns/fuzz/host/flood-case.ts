import { ok, strictEqual } from 'node:assert/strict'
import { ScriptExecutor } from '../../../src/executor/index.ts'
import { CAPS } from '../../../src/protocol/index.ts'
import { replayChannel } from '../../../src/testing/index.ts'
import { FOREIGN_ID, HARNESS_CORPUS, OWN_ID } from '../corpus.ts'
import type { FuzzCase } from '../fuzz-case.ts'
import { mutatedLine } from '../lines.ts'
import type { Random } from '../../../test/support/random.ts'

const KiB = 1024
/** The bytes that the host reads beyond `maxOutputBytes`: its allowance for the harness's final error, and the longest line, a display. */
const BEYOND_BYTES = 64 * KiB + CAPS.displayBytes + 64 * KiB
/** The size of the whole flood; a host that reads all of it has no limit. */
const FLOOD_BYTES = 64 * KiB * KiB

/** A flood of data other than frames of the run ends it as `output-limit`; the host reads at most the limit and one line. */
export function floodCase(random: Random): FuzzCase {
  const unit = floodOf(random)
  const size = random.pick([1, 64, 4 * KiB, 64 * KiB]) * unit.length
  const chunk = Buffer.alloc(Math.min(Math.max(size, 64), 256 * KiB), unit)
  const maxOutputBytes = random.pick([1, 10 * KiB, 256 * KiB])
  return {
    property: 'a flood is read no further than the limit and one line',
    pieces: [chunk],
    async check() {
      let taken = 0
      function* flood(): Generator<Uint8Array> {
        for (; taken < FLOOD_BYTES; taken += chunk.length) yield chunk
      }
      const executor = new ScriptExecutor({ limits: { maxOutputBytes, executionTimeoutSec: 60 } })
      const result = await executor.run({ sandbox: replayChannel(flood()), script: 'pass', executionId: OWN_ID })
      strictEqual(result.status, 'output-limit')
      const allowed = maxOutputBytes + BEYOND_BYTES + 2 * chunk.length
      ok(taken <= allowed, `${taken} bytes were read, ${allowed} are allowed`)
    },
  }
}

/** The repeated bytes; none of them could be a frame of the run, which may end it otherwise. */
function floodOf(random: Random): Buffer {
  const foreign = HARNESS_CORPUS.map((frame) => ({ ...frame, execution_id: FOREIGN_ID }))
  switch (random.below(5)) {
    case 0:
      return Buffer.from(random.pick(['x', '{', '[', '"', '\0', '\r', 'ü', '{"a":']))
    case 1:
      return Buffer.from('\n')
    case 2:
      return Buffer.from(`${JSON.stringify(random.pick(foreign))}\n`)
    case 3:
      return Buffer.concat([Buffer.from('#'), mutatedLine(foreign, random), Buffer.from('\n')])
    default:
      return Buffer.from(
        random.bytes(random.between(1, 64)).map((byte) => (byte === 0x0a && random.oneIn(2) ? 0 : byte)),
      )
  }
}
