import { strict as assert } from 'node:assert'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunOptions } from '../../../src/options/index.ts'
import type { Sandglass } from '../../../src/sandglass.ts'
import { type Answer, answerOf } from '../driver/answer.ts'
import type { EngineUnderTest, SandboxProcess } from '../driver/engine.ts'
import { fillIn, type Fixtures, makeFixtures } from '../driver/fixtures.ts'
import type { TestedEngine } from '../engines/tested.ts'
import { selectAttacks } from '../walls.ts'
import { FRESH } from './cases/index.ts'
import type { MachineEngine } from '../../../test/support/walls.ts'
import { type FreshCase, type Observation, PRELUDE, type ExpectedRun } from './fresh-case.ts'

/** Deadline of a case without one of its own, in seconds. */
const DEADLINE_SEC = 10
/** The time that a call may take beyond its deadline if the host's backstop has to end it. */
const BACKSTOP_MS = 6000
/** Making Pyodide's snapshot takes that long on a busy machine. */
const START_MS = 180_000
/** A name of the host's network namespace, of this process alone. */
const ABSTRACT = `sandglass-fresh-${process.pid}`

const EXTRA = new Map([['ABSTRACT_NAME', ABSTRACT]])

/** All attacks that are for an engine, one after the other in one sandbox, without a checker. */
export async function freshAttacks(tested: TestedEngine): Promise<void> {
  const name = tested.name as MachineEngine
  const { skip, open } = await tested.ready()

  describe.skipIf(skip)(`attacks that start from SECURITY.md, on the ${name} engine`, () => {
    let engine: EngineUnderTest
    let sandglass: Sandglass
    let fixtures: Fixtures
    let abstract: Server

    beforeAll(async () => {
      process.env['FRESH_TOOL_SECRET'] = 'secret of the host tool'
      engine = open()
      fixtures = await makeFixtures(engine)
      process.env['FRESH_CANARY'] = fixtures.values.get('HOST_ENV_CANARY')
      abstract = createServer(() => assert.fail('the abstract socket was contacted')).listen(`\0${ABSTRACT}`)
      sandglass = await engine.open({ poolSize: 1, maxOverflow: 0, maxUses: 1000, checkoutTimeoutMs: START_MS })
    }, START_MS)

    afterAll(async () => {
      const breaches = fixtures.breaches()
      abstract.close()
      await sandglass.close()
      await fixtures[Symbol.asyncDispose]()
      await engine.close()
      assert.deepEqual(breaches, [])
    })

    describe.each(casesOf(name))('%s', (_area, cases) => {
      for (const given of cases)
        test(
          `${given.id} ${given.title}`,
          () => expect(attack(given, name, engine, sandglass, fixtures)).resolves.toBeUndefined(),
          START_MS,
        )
    })
  })
}

/** The areas that have attacks for an engine. */
function casesOf(name: MachineEngine): (readonly [string, readonly FreshCase[]])[] {
  const all = FRESH.flatMap(([area, cases, walls]) => cases.map((given) => ({ area, given, walls })))
  const mine = all.filter(({ given }) => given.engines.includes(name))
  const selected = selectAttacks(name, mine, ({ walls }) => walls)
  return FRESH.map(
    ([area]) => [area, selected.filter((one) => one.area === area).map(({ given }) => given)] as const,
  ).filter(([, cases]) => cases.length > 0)
}

async function attack(
  given: FreshCase,
  name: MachineEngine,
  engine: EngineUnderTest,
  sandglass: Sandglass,
  fixtures: Fixtures,
): Promise<void> {
  const options = optionsOf(given, fixtures)
  const idle = await answerOf(sandglass, 'emit_result(1)', {})
  const id = idle.result?.sandbox?.id ?? ''
  const before = engine.processesOf(id)
  const first = await answerOf(sandglass, PRELUDE + fillIn(given.script, fixtures, EXTRA), options)
  given.settled?.()
  const second =
    given.next === undefined
      ? null
      : await answerOf(sandglass, PRELUDE + fillIn(given.next, fixtures, EXTRA), { tools: options.tools ?? [] })
  const served = await answerOf(sandglass, 'emit_result("served")', {})
  const after = engine.processesOf(served.result?.sandbox?.id ?? '')
  const differs = given.differs?.[name]
  const deadlineMs = 1000 * (options.limits?.executionTimeoutSec ?? DEADLINE_SEC)

  const came = {
    first: seenOf(first, given.expected.mayWarn),
    second: second === null ? null : seenOf(second),
    next: served.result?.finalData,
  }
  const wanted = {
    first: expectedOf(differs?.expected ?? given.expected),
    second: second === null ? null : expectedOf(differs?.expectedNext ?? given.expectedNext),
    next: 'served',
  }
  expect(came).toEqual(wanted)
  assert.ok(first.runMs < deadlineMs + BACKSTOP_MS, `it settled after ${Math.round(first.runMs)} ms`)
  // Broker, zygote, and one child forked ahead.
  if (name !== 'pyodide') assert.ok(after.length <= 3, `${after.length} processes live on`)
  if (name !== 'pyodide' && given.costsSandbox !== true) {
    const used = [first, second ?? first, served].map(({ result }) => result?.sandbox?.id)
    assert.deepEqual(used, [id, id, id], 'the sandbox was given up')
  }
  const observed: Observation = {
    engine: name,
    first,
    second,
    processes: { before, after },
    opened: () => after.filter(({ insidePid }) => insidePid === 1).flatMap(openedBy),
    fixtures,
  }
  await given.host?.(observed)
}

function optionsOf({ options = {} }: FreshCase, fixtures: Fixtures): RunOptions {
  const limits = { executionTimeoutSec: DEADLINE_SEC, ...options.limits }
  const secrets = Object.entries(options.secrets ?? {}).map(([key, value]) => [key, fillIn(value, fixtures)])
  return { ...options, limits, secrets: Object.fromEntries(secrets) as Record<string, string>, policy: 'off' }
}

function seenOf({ result, thrown }: Answer, mayWarn: readonly string[] = []): unknown {
  if (result === null) return { thrown }
  const codes = result.warnings.map(({ code }) => code).filter((code) => !mayWarn.includes(code))
  const warnings = [...new Set(codes)].toSorted()
  return { status: result.status, data: result.hasResult ? result.finalData : null, warnings }
}

function expectedOf(run: ExpectedRun | undefined): unknown {
  return { status: run?.status, data: run?.data, warnings: run?.warnings ?? [] }
}

/** The targets of a process's descriptors, as the host's root sees them, without those that it closes meanwhile. */
function openedBy({ pid }: SandboxProcess): string[] {
  const directory = `/proc/${pid}/fd`
  return readdirSync(directory).flatMap((name) => {
    try {
      return readlinkSync(`${directory}/${name}`)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw error
    }
  })
}

/** A page of the documents as one line of words. */
export function wordsOf(page: string): string {
  return readFileSync(new URL(`../../../${page}`, import.meta.url), 'utf8').replaceAll(/\s+/g, ' ')
}
