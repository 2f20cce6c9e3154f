import assert from 'node:assert/strict'
import { python } from './peer.ts'

/** The longest time in which a whole processor is compared with a fifth of one. */
const COMPARED_MS = 40_000

/** Counts finished work, not CPU time: the sandbox's own kernel may count time that it did not get. */
export const WORK: string = python`
  import time
  until, done = time.monotonic() + 0.5, 0
  while time.monotonic() < until:
      for _ in range(20_000): done += 1
  emit_result(done)
`

/**
 * Fails unless a fifth of a processor does far less than a whole one. While other programs take the processors, the whole share is not
 * to be had. More rounds can only raise what the part did.
 */
export async function assertFarLess(part: () => Promise<number>, whole: () => Promise<number>): Promise<void> {
  let [ofWhole, ofPart] = [0, 0]
  const end = performance.now() + COMPARED_MS
  for (let round = 1; round <= 2 || (performance.now() < end && ofPart >= 0.6 * ofWhole); round += 1) {
    ofWhole = Math.max(ofWhole, await whole())
    ofPart = Math.max(ofPart, await part())
  }
  assert.ok(ofPart < 0.6 * ofWhole, `${ofPart / ofWhole} of the work of a whole processor, with a fifth of it`)
}
