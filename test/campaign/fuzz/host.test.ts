import { expect, test } from 'vitest'
import { LineSplitter } from '../../../src/protocol/index.ts'
import { hostCampaign } from '../../../campaigns/fuzz/campaign.ts'
import type { DriveReport } from '../../../campaigns/fuzz/drive.ts'
import { announce, problemsOf, seedOfTests } from '../../../campaigns/fuzz/short-form.ts'

/** One case takes 5 s, because only a deadline ends it; the others share the rest of the time. */
const CASES = 15_000
const WITHIN_MS = 8_000

test('mutated lines and streams break nothing on the host (npm run fuzz is the long form)', async () => {
  const reports: DriveReport[] = []
  await hostCampaign({
    seed: seedOfTests(),
    count: CASES,
    withinMs: WITHIN_MS,
    onReport: (report) => void reports.push(report),
  })
  announce(reports)
  expect(problemsOf(reports)).toEqual([])
  // Every kind ran, even on a slow machine: the first cases are the same everywhere.
  expect(reports.map(({ cases }) => cases >= 10)).toEqual([true, true])
})

test('a line of 16 MiB without an end, in pieces of 64 bytes, is buffered once in linear time', () => {
  const size = 16 * 1024 * 1024
  const piece = Buffer.alloc(64, '[')
  const splitter = new LineSplitter(size)
  // Quadratic work would copy two terabytes here and run into the time limit of the test.
  for (let at = 0; at < size; at += piece.length) for (const line of splitter.push(piece)) expect(line).toBeUndefined()
  expect(splitter.pendingBytes).toBe(size)
})
