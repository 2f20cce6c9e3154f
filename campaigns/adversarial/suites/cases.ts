import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test, type TestContext } from 'vitest'
import { runnerOf } from '../driver/answer.ts'
import { type AcceptanceCase, GROUPS, readCases, readLaterCases } from '../driver/case.ts'
import { EXPECTED } from '../driver/expected/index.ts'
import { makeFixtures } from '../driver/fixtures.ts'
import { Semaphore } from '../driver/semaphore.ts'
import type { Ledger } from '../driver/ledger.ts'
import { runCase } from '../driver/run-case.ts'
import type { CaseContext } from '../driver/case-state.ts'
import { type Row, tableOf } from '../driver/table.ts'
import type { Exclusion, TestedEngine } from '../engines/tested.ts'
import { IN_WORKSPACE, isRun, selectAttacks, wallsOf } from '../walls.ts'

const TIMEOUT_MS = 300_000
/** Cases that mostly wait; they run beside all others, from the start. */
const IDLE: ReadonlySet<string> = new Set(['FLT-023'])
/** Its cases stop and kill hosts within bounds of time. */
const HOST_FAULTS = 'host-faults'

/**
 * Runs the cases of one engine with the checker off; those with the key `static` also run with the checker on. An excluded
 * case is skipped with its reason. A case that depends on walls of another engine runs on that engine (walls.ts).
 */
export async function acceptanceCases(tested: TestedEngine): Promise<void> {
  const { name, faults, excluded } = tested
  const cases = readCases()
  const later = new Set(readLaterCases().map(({ id }) => id))
  const now = cases.filter(({ id }) => !later.has(id) && !IN_WORKSPACE.has(id))
  const selected = selectAttacks(name, now, wallsOf).filter((given) => isRun(tested, given))
  const assertions = new Map([...EXPECTED, ...faults])
  const rows: Row[] = []
  /** Three cases at a time fill two cores. Cases that measure memory or short times run alone. */
  const semaphore = new Semaphore(3)
  /** These start hosts, which load the library: with three, a start of a sandbox took longer than its bound of 15 s. */
  const hostFaults = new Semaphore(2)

  test(`every case runs on the ${name} engine, waits for a named feature, or is excluded with a reason`, () => {
    const unknown = [...later, ...excluded.keys()].filter((id) => !cases.some((given) => given.id === id))
    const notRun = now.filter(({ group }) => !GROUPS.includes(group)).map(({ id }) => id)
    const twice = [...excluded.keys()].filter((id) => later.has(id) || faults.has(id))
    const unnamed = readLaterCases().filter(({ waits_for: what }) => what.trim() === '')
    expect({ unknown, notRun, twice, unnamed }).toEqual({ unknown: [], notRun: [], twice: [], unnamed: [] })
    expect(readLaterCases().length).toBe(later.size)
    expect([...excluded].filter(([, where]) => !isValidExclusion(where))).toEqual([])
  })

  const { skip, open } = await tested.ready()

  describe.skipIf(skip)(`adversarial cases on the ${name} engine`, () => {
    let context: CaseContext
    let close: () => Promise<void>

    beforeAll(async () => {
      const engine = open()
      const fixtures = await makeFixtures(engine)
      const shared = runnerOf(await engine.open({ poolSize: 2, maxOverflow: 2 }))
      context = { engine, fixtures, shared }
      close = async () => {
        await shared.close()
        await fixtures[Symbol.asyncDispose]()
        await engine.close()
      }
    })

    afterAll(async () => {
      const breaches = context.fixtures.breaches()
      await close()
      console.log(`${name}\n${tableOf(rows)}`)
      assert.deepEqual(breaches, [])
    })

    const isIdle = ({ id }: AcceptanceCase): boolean => IDLE.has(id)
    // They run after the others, not beside them: not even one that waits, whose sandboxes would be counted.
    const isApart = (given: AcceptanceCase): boolean =>
      !isIdle(given) && (given.group === HOST_FAULTS || isSensitive(given))
    const others = selected.filter((given) => !isIdle(given) && !isApart(given))
    // One after another, each group would wait for its last case alone.
    describe.concurrent.each(grouped(selected.filter(isIdle)))('%s', (group, cases) => {
      declare(group, cases)
    })
    describe.concurrent.each(grouped(others))('%s', (group, cases) => {
      declare(group, cases)
    })
    describe.each(grouped(selected.filter(isApart)))('%s', (group, cases) => {
      declare(group, cases)
    })

    function grouped(all: readonly AcceptanceCase[]): [string, AcceptanceCase[]][] {
      return GROUPS.map((group): [string, AcceptanceCase[]] => [
        group,
        all.filter((one) => one.group === group),
      ]).filter(([, those]) => those.length > 0)
    }

    function declare(group: string, those: readonly AcceptanceCase[]): void {
      for (const given of those) {
        const where = excluded.get(given.id)
        test.concurrent(
          `${given.id} ${given.title}`,
          async (testContext) => {
            if (where !== undefined) return skipCase(testContext, `${name}: ${given.id}: ${describeExclusion(where)}`)
            const run = (): Promise<Ledger> => runCase(given, context, assertions.get(given.id))
            const places = group === HOST_FAULTS ? hostFaults : semaphore
            const ledger = await (isIdle(given) ? run() : places.run(isSensitive(given), run))
            rows.push({ group, ledger })
            expect(ledger.missing()).toEqual([])
          },
          TIMEOUT_MS,
        )
      }
    }
  })
}

function isSensitive({ id, check }: AcceptanceCase): boolean {
  return 'host_rss_growth_mb_max' in check || ['POL-004', 'POL-019', 'POL-020'].includes(id)
}

function skipCase(context: TestContext, reason: string): void {
  console.log(`left out: ${reason}`)
  context.skip(reason)
}

function describeExclusion(where: Exclusion): string {
  return 'why' in where ? where.why : `covered by test/${where.file}: ${where.test}`
}

/** Checks that an exclusion has a reason, or that its test exists. */
function isValidExclusion(where: Exclusion): boolean {
  if ('why' in where) return where.why.trim() !== ''
  const path = new URL(`../../../test/${where.file}`, import.meta.url)
  return existsSync(path) && readFileSync(path, 'utf8').includes(where.test)
}
