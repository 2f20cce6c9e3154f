import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test, type TestContext } from 'vitest'
import { runnerOf } from '../driver/answer.ts'
import { type AcceptanceCase, GROUPS, readCases, readLater } from '../driver/case.ts'
import { EXPECTED } from '../driver/expected/index.ts'
import { makeFixtures } from '../driver/fixtures.ts'
import { Gate } from '../driver/gate.ts'
import type { Ledger } from '../driver/ledger.ts'
import { runCase } from '../driver/run-case.ts'
import type { Ground } from '../driver/stage.ts'
import { type Row, tableOf } from '../driver/table.ts'
import type { LeftOut, TestedEngine } from '../engines/tested.ts'

const TIMEOUT_MS = 300_000

/** Every case on one engine with the checker off, and those with the key `static` with it too; those that are not for it are skipped, each with its reason. */
export async function acceptanceCases(tested: TestedEngine): Promise<void> {
  const { name, faults, leftOut, groups = GROUPS } = tested
  const cases = readCases()
  const later = new Set(readLater().map(({ id }) => id))
  const now = cases.filter(({ id }) => !later.has(id))
  const assertions = new Map([...EXPECTED, ...faults])
  const rows: Row[] = []
  /** Three at a time fill two cores; what measures memory or a short time runs alone. */
  const gate = new Gate(3)

  test(`every case is run on the ${name} engine, or waits or is left out for something that is named`, () => {
    const unknown = [...later, ...leftOut.keys()].filter((id) => !cases.some((given) => given.id === id))
    const notRun = now.filter(({ group }) => !GROUPS.includes(group)).map(({ id }) => id)
    const twice = [...leftOut.keys()].filter((id) => later.has(id) || faults.has(id))
    const unnamed = readLater().filter(({ waits_for: what }) => what.trim() === '')
    expect({ unknown, notRun, twice, unnamed }).toEqual({ unknown: [], notRun: [], twice: [], unnamed: [] })
    expect(readLater().length).toBe(later.size)
    expect([...leftOut].filter(([, where]) => !isThere(where))).toEqual([])
  })

  const { skip, open } = await tested.ready()

  describe.skipIf(skip)(`adversarial cases on the ${name} engine`, () => {
    let ground: Ground
    let close: () => Promise<void>

    beforeAll(async () => {
      const engine = open()
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
      console.log(`${name}\n${tableOf(rows)}`)
      assert.deepEqual(breaches, [])
    })

    describe.each(groups)('%s', (group) => {
      for (const given of now.filter((one) => one.group === group)) {
        const where = leftOut.get(given.id)
        test.concurrent(
          `${given.id} ${given.title}`,
          async (context) => {
            if (where !== undefined) return leave(context, `${name}: ${given.id}: ${shownReason(where)}`)
            const run = (): Promise<Ledger> => runCase(given, ground, assertions.get(given.id))
            const ledger = await gate.pass(isSensitive(given), run)
            rows.push({ group, ledger })
            expect(ledger.missing()).toEqual([])
          },
          TIMEOUT_MS,
        )
      }
    })
  })
}

function isSensitive({ id, check }: AcceptanceCase): boolean {
  return 'host_rss_growth_mb_max' in check || ['POL-004', 'POL-019', 'POL-020'].includes(id)
}

function leave(context: TestContext, reason: string): void {
  console.log(`left out: ${reason}`)
  context.skip(reason)
}

function shownReason(where: LeftOut): string {
  return 'why' in where ? where.why : `stands in test/${where.file}: ${where.test}`
}

/** Whether a test of its own is where it is said to be. */
function isThere(where: LeftOut): boolean {
  if ('why' in where) return where.why.trim() !== ''
  const path = new URL(`../../${where.file}`, import.meta.url)
  return existsSync(path) && readFileSync(path, 'utf8').includes(where.test)
}
