import { expect, test } from 'vitest'
import { localEngine } from '../../../src/engines/local/index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { brokerCampaign } from '../../../campaigns/fuzz/campaign.ts'
import type { DriveReport } from '../../../campaigns/fuzz/drive.ts'
import { announce, problemsOf, seedOfTests } from '../../../campaigns/fuzz/short-form.ts'

const CASES = 2400
const WITHIN_MS = 6_000
const { skip } = await requireLocalEngine()

test('mutated requests and frames break neither the harness nor real sandboxes', async () => {
  const reports: DriveReport[] = []
  const engine = localEngine()
  try {
    await brokerCampaign({
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
  // The first cases of each part are the same on every machine; at least one round of each ran.
  expect(reports.map(({ side, cases }) => [side, cases > 0])).toEqual([
    ['broker', true],
    ...(skip ? [] : [['sandbox', true]]),
  ])
})
