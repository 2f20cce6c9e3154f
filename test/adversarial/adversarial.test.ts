import assert from 'node:assert/strict'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../local-engine.ts'
import { runnerOf } from './driver/answer.ts'
import { type AcceptanceCase, GROUPS, readCases, readLater } from './driver/case.ts'
import { EXPECTED } from './driver/expected/index.ts'
import { makeFixtures } from './driver/fixtures.ts'
import { Gate } from './driver/gate.ts'
import { runCase } from './driver/run-case.ts'
import type { Ground } from './driver/stage.ts'
import { type Row, tableOf } from './driver/table.ts'
import { openEngine } from './engines/local.ts'
import { LOCAL_FAULTS } from './engines/local-faults.ts'

const cases = readCases()
const later = new Set(readLater().map(({ id }) => id))
const now = cases.filter(({ id }) => !later.has(id))
const assertions = new Map([...EXPECTED, ...LOCAL_FAULTS])
const rows: Row[] = []
/** Three at a time fill two cores; what measures memory or a short time runs alone. */
const gate = new Gate(3)
const TIMEOUT_MS = 300_000

test('every case is either run or waits for something that is named', () => {
  const unknown = [...later].filter((id) => !cases.some((given) => given.id === id))
  const notRun = now.filter(({ group }) => !GROUPS.includes(group)).map(({ id }) => id)
  const twice = readLater().length - later.size
  const unnamed = readLater().filter(({ waits_for: what }) => what.trim() === '')
  expect({ unknown, notRun, twice, unnamed }).toEqual({ unknown: [], notRun: [], twice: 0, unnamed: [] })
})

const { skip } = await requireLocalEngine()

describe.skipIf(skip)('adversarial cases on the local engine, checker off', () => {
  let ground: Ground
  let close: () => Promise<void>

  beforeAll(async () => {
    const engine = openEngine()
    const fixtures = await makeFixtures(engine)
    const shared = runnerOf(await engine.open({ poolSize: 2, maxOverflow: 2 }))
    ground = { engine, fixtures, shared }
    close = async () => {
      await shared.close()
      await fixtures[Symbol.asyncDispose]()
      await engine.close()
    }
  })

  afterAll(async () => {
    const breaches = ground.fixtures.breaches()
    await close()
    console.log(tableOf(rows))
    assert.deepEqual(breaches, [])
  })

  describe.each(GROUPS)('%s', (group) => {
    const ofGroup = now.filter((given) => given.group === group)
    test.concurrent.each(ofGroup.map((given): [string, string, AcceptanceCase] => [given.id, given.title, given]))(
      '%s %s',
      async (id, _title, given) => {
        const ledger = await gate.pass(isSensitive(given), () => runCase(given, ground, assertions.get(id)))
        rows.push({ group, ledger })
        expect(ledger.missing()).toEqual([])
      },
      TIMEOUT_MS,
    )
  })
})

function isSensitive({ id, check }: AcceptanceCase): boolean {
  return 'host_rss_growth_mb_max' in check || ['POL-004', 'POL-019', 'POL-020'].includes(id)
}
