import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { Semaphore } from '../../../campaigns/adversarial/driver/semaphore.ts'
import { type Lane, openLane } from '../../../campaigns/adversarial/mutations/lane.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { copyTree, patchCopy } from '../../../campaigns/adversarial/mutations/copy.ts'
import { type Patch, SHORT_CONTROL, type TestSelection } from '../../../campaigns/adversarial/mutations/mutation.ts'
import { MUTATIONS } from '../../../campaigns/adversarial/mutations/mutations.ts'
import { readNoticed } from '../../../campaigns/adversarial/mutations/noticed.ts'
import { listTests, type Trial } from '../../../campaigns/adversarial/mutations/trial.ts'
import { nameOf, problemOfBaseline, verdictOn } from '../../../campaigns/adversarial/mutations/verdict.ts'

/* Removes defences in copies of the tree. The long form is `npm run adversarial -- --mutate`; tests without a trial are in test/unit. */

/** The limit for a hung trial; on two idle cores a trial takes seconds. */
const TRIAL_MS = 300_000
/** A trial takes about one core. */
const LANES = 2

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

test('patches are gone when they are disposed of, and when one of them does not apply', () => {
  using copy = copyTree()
  const file = 'package.json'
  const read = (): string => readFileSync(join(copy.root, file), 'utf8')
  const before = read()
  const patches = [
    { file, from: '"name": "sandglass"', to: '"name": "other"' },
    { file, from: '"name": "other"', to: '"name": "third"' },
  ]
  const patched = patchCopy(copy, patches)
  expect(read()).toBe(before.replace('"name": "sandglass"', '"name": "third"'))
  patched[Symbol.dispose]()
  expect(read()).toBe(before)
  expect(() => patchCopy(copy, [...patches, ...patches])).toThrow('package.json holds this 0 times')
  expect(read()).toBe(before)
})

const { skip } = await requireLocalEngine()
/** Defences of workspaces and environments without quick tests of the adversarial suite are left to the long form. */
const SHORT = MUTATIONS.filter(({ quick }) => quick.length > 0)

const semaphore = new Semaphore(LANES)
const idle: Lane[] = []

afterAll(async () => {
  for (const lane of idle) await lane[Symbol.asyncDispose]()
})

/** Tries it on a lane that is idle. One that failed is not used again. */
function tryOut(
  selections: readonly TestSelection[],
  patches: readonly Patch[],
  signal: AbortSignal,
  alone = false,
): Promise<Trial> {
  return semaphore.run(alone, async () => {
    const lane = idle.pop() ?? (await openLane(copyTree()))
    try {
      const trial = await lane.tryOut(selections, patches, signal)
      idle.push(lane)
      return trial
    } catch (error) {
      await lane[Symbol.asyncDispose]()
      throw error
    }
  })
}

describe.skipIf(skip).concurrent('a copy of the tree', () => {
  test(
    'passes the tests that notice, when nothing is taken away',
    async ({ signal }) => {
      const selections = [SHORT_CONTROL, ...SHORT.flatMap(({ quick }) => quick)]
      const trial = await tryOut(selections, [], signal)
      expect(problemOfBaseline(selections, trial)).toBeUndefined()
    },
    TRIAL_MS,
  )

  test.for(SHORT)(
    'without $name fails a test that is about it, and runs scripts as ever',
    { timeout: TRIAL_MS },
    async ({ name, patches, quick, alone }, { signal }) => {
      const trial = await tryOut([SHORT_CONTROL, ...quick], patches, signal, alone)
      const { noticed, problem } = verdictOn({ selected: quick }, trial, SHORT_CONTROL)
      if (problem !== undefined) throw new Error(`${problem}\n${trial.output.slice(-4000)}`)
      expect(readNoticed().noticed[name]).toEqual(expect.arrayContaining([...noticed]))
    },
  )
})
