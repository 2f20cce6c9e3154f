import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { Semaphore } from '../../../campaigns/adversarial/driver/semaphore.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { copyTree } from '../../../campaigns/adversarial/mutations/copy.ts'
import { SHORT_CONTROL } from '../../../campaigns/adversarial/mutations/mutation.ts'
import { MUTATIONS } from '../../../campaigns/adversarial/mutations/mutations.ts'
import { readNoticed } from '../../../campaigns/adversarial/mutations/noticed.ts'
import { listTests, tryOut } from '../../../campaigns/adversarial/mutations/trial.ts'
import { nameOf, problemOfBaseline, verdictOn } from '../../../campaigns/adversarial/mutations/verdict.ts'

/* Removes defences in copies of the tree. The long form is `npm run adversarial -- --mutate`; tests without a trial are in test/unit. */

/** The limit for a hung trial; on two idle cores a trial takes seconds. */
const TRIAL_MS = 300_000
/** Most of a trial is the start of vitest, on one core. */
const semaphore = new Semaphore(2)

describe('the record of tests that detect a missing defence', () => {
  const { noticed } = readNoticed()

  test('names tests that exist', { timeout: TRIAL_MS }, async ({ signal }) => {
    using copy = copyTree()
    const there = new Set((await listTests(copy, signal)).map(nameOf))
    expect(there.size).toBeGreaterThan(100)
    expect(
      Object.values(noticed)
        .flat()
        .filter((name) => !there.has(name)),
    ).toEqual([])
  })
})

test('a copy is removed when it is disposed of, or at the next start when its maker was killed', () => {
  const module = JSON.stringify(new URL('../../../campaigns/adversarial/mutations/copy.ts', import.meta.url))
  const maker = `const { copyTree } = await import(${module}); console.log(copyTree().root); process.kill(process.pid, 9)`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', maker], { encoding: 'utf8' })
  const left = stdout.trim()
  expect(existsSync(left)).toBe(true)
  const copy = copyTree()
  expect([left, copy.root].map((path) => existsSync(path))).toEqual([false, true])
  copy[Symbol.dispose]()
  expect(existsSync(copy.root)).toBe(false)
})

const { skip } = await requireLocalEngine()
/** Defences of workspaces and environments without quick tests of the adversarial suite are left to the long form. */
const SHORT = MUTATIONS.filter(({ quick }) => quick.length > 0)

describe.skipIf(skip).concurrent('a copy of the tree', () => {
  test(
    'passes the tests that notice, when nothing is taken away',
    async ({ signal }) => {
      using copy = copyTree()
      const selections = [SHORT_CONTROL, ...SHORT.flatMap(({ quick }) => quick)]
      const trial = await semaphore.run(false, () => tryOut(copy, selections, signal))
      expect(problemOfBaseline(selections, trial)).toBeUndefined()
    },
    TRIAL_MS,
  )

  test.for(SHORT)(
    'without $name fails a test that is about it, and runs scripts as ever',
    { timeout: TRIAL_MS },
    async ({ name, patches, quick }, { signal }) => {
      using copy = copyTree(patches)
      const trial = await semaphore.run(false, () => tryOut(copy, [SHORT_CONTROL, ...quick], signal))
      const { noticed, problem } = verdictOn({ selected: quick }, trial, SHORT_CONTROL)
      if (problem !== undefined) throw new Error(`${problem}\n${trial.output.slice(-4000)}`)
      expect(readNoticed().noticed[name]).toEqual(expect.arrayContaining([...noticed]))
    },
  )
})
