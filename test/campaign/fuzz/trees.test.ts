import { expect, test } from 'vitest'
import { treeCampaign } from '../../../campaigns/fuzz/campaign.ts'
import type { DriveReport } from '../../../campaigns/fuzz/drive.ts'
import { announce, problemsOf, seedOfTests } from '../../../campaigns/fuzz/short-form.ts'
import { checkDamage, storeWorkspace } from '../../../campaigns/fuzz/trees/damaged-case.ts'
import { localEngine } from '../../../src/engines/local/index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const CASES = 1600
const WITHIN_MS = 4_000
const { skip } = await requireLocalEngine()

test('hostile and damaged trees in a store lead nowhere out of a workspace (npm run fuzz is the long form)', async () => {
  const reports: DriveReport[] = []
  const engine = localEngine()
  try {
    await treeCampaign({
      seed: seedOfTests(),
      count: CASES,
      withinMs: WITHIN_MS,
      onReport: (report) => void reports.push(report),
      ...(skip ? {} : { engine }),
    })
  } finally {
    await engine.close()
  }
  announce(reports)
  expect(problemsOf(reports)).toEqual([])
  expect(reports.map(({ side, cases }) => [side, cases > 0])).toEqual([
    ['tree', true],
    ...(skip ? [] : [['restore', true]]),
  ])
})

test('a workspace of which any byte in its store is flipped, or is missing with all after it, is whole or refused by name', async () => {
  using stored = await storeWorkspace()
  let bytes = 0
  for (const [path, sound] of stored.files) {
    for (let at = 0; at < sound.length; at++) {
      const flipped = Buffer.from(sound)
      flipped[at] = (sound[at] ?? 0) ^ (1 << (at % 8))
      await checkDamage(stored, path, flipped)
      await checkDamage(stored, path, sound.subarray(0, at))
      bytes += 1
    }
  }
  expect(bytes).toBeGreaterThan(1000)
})
