import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../local-engine.ts'
import { copyTree, ROOT } from './mutations/copy.ts'
import { type Look, patched, SHORT_CONTROL } from './mutations/mutation.ts'
import { MUTATIONS } from './mutations/mutations.ts'
import { readNoticed, withSection } from './mutations/noticed.ts'
import { listTests, tryOut } from './mutations/trial.ts'
import { nameOf, problemOfBaseline, verdictOn } from './mutations/verdict.ts'

/* Defences taken away in copies of the tree: `npm run adversarial -- --mutate` is the long form, this is the short one. */

/** A bound for what hangs; on two idle cores a trial takes seconds. */
const TRIAL_MS = 300_000

describe('the record of what notices a missing defence', () => {
  const { noticed } = readNoticed()

  test('has the twelve defences, and for each a test that notices', () => {
    expect(MUTATIONS).toHaveLength(12)
    expect(Object.keys(noticed)).toEqual(MUTATIONS.map(({ name }) => name))
    expect(Object.entries(noticed).filter(([, names]) => names.length === 0)).toEqual([])
  })

  test('names tests that there are', { timeout: TRIAL_MS }, async ({ signal }) => {
    using copy = copyTree()
    const there = new Set((await listTests(copy, signal)).map(nameOf))
    expect(there.size).toBeGreaterThan(100)
    expect(
      Object.values(noticed)
        .flat()
        .filter((name) => !there.has(name)),
    ).toEqual([])
  })

  test('is what SECURITY.md shows (npm run adversarial -- --mutate --write)', () => {
    const page = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8')
    expect(page).toBe(withSection(page, readNoticed()))
  })
})

test.each(MUTATIONS)('the patch of $name applies to the tree as it is', ({ patches }) => {
  for (const patch of patches) {
    const text = readFileSync(join(ROOT, patch.file), 'utf8')
    expect(patched(text, patch)).not.toBe(text)
  }
})

test('a copy goes when it is disposed of, or at the next start when its maker was killed', () => {
  const module = JSON.stringify(new URL('mutations/copy.ts', import.meta.url))
  const maker = `const { copyTree } = await import(${module}); console.log(copyTree().root); process.kill(process.pid, 9)`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', maker], { encoding: 'utf8' })
  const left = stdout.trim()
  expect(existsSync(left)).toBe(true)
  const copy = copyTree()
  expect([left, copy.root].map((path) => existsSync(path))).toEqual([false, true])
  copy[Symbol.dispose]()
  expect(existsSync(copy.root)).toBe(false)
})

describe('a mutation', () => {
  const look: readonly Look[] = [{ suite: 'supervisor', titles: ['attack'] }]
  const control = { suite: 'cases', title: 'benign-control > OK-001 fine', passed: true } as const
  const attack = { suite: 'supervisor', title: 'an attack', passed: false } as const
  const verdict = (...tests: Parameters<typeof verdictOn>[1]['tests']): object =>
    verdictOn({ look }, { tests, output: '' })

  test('is noticed by a failed test about its defence beside a control that passes', () => {
    expect(verdict(control, attack)).toEqual({ noticed: ['supervisor: an attack'], problem: undefined })
  })

  test('is not noticed where all pass, or where what fails is about something else', () => {
    const unnoticed = { noticed: [], problem: 'no test notices' }
    expect(verdict(control, { ...attack, passed: true })).toEqual(unnoticed)
    expect(verdict(control, { ...attack, title: 'something else' })).toEqual(unnoticed)
  })

  test('that breaks everything, or leaves nothing to compare with, is no proof', () => {
    const noticed = ['supervisor: an attack']
    const problem = 'more than the defence is gone: cases: benign-control > OK-001 fine'
    expect(verdict({ ...control, passed: false }, attack)).toEqual({ noticed, problem })
    expect(verdict(attack)).toEqual({ noticed, problem: 'no control was run' })
  })

  test('whose text is gone from its file, or stands there twice, is refused', () => {
    const patch = { file: 'a.py', from: 'x = 1\n', to: '' }
    expect(() => patched('y = 1\n', patch)).toThrow('a.py holds this 0 times and must hold it once:\nx = 1')
    expect(() => patched('x = 1\nx = 1\n', patch)).toThrow('a.py holds this 2 times')
  })
})

const { skip } = await requireLocalEngine()

describe.skipIf(skip)('a copy of the tree', () => {
  test(
    'passes the tests that notice, when nothing is taken away',
    async ({ signal }) => {
      using copy = copyTree()
      const looks = [SHORT_CONTROL, ...MUTATIONS.flatMap(({ shortly }) => shortly)]
      expect(problemOfBaseline(looks, await tryOut(copy, looks, signal))).toBeUndefined()
    },
    TRIAL_MS,
  )

  test.for(MUTATIONS)(
    'without $name fails a test that is about it, and runs scripts as ever',
    { timeout: TRIAL_MS },
    async ({ name, patches, shortly }, { signal }) => {
      using copy = copyTree(patches)
      const trial = await tryOut(copy, [SHORT_CONTROL, ...shortly], signal)
      const { noticed, problem } = verdictOn({ look: shortly }, trial, SHORT_CONTROL)
      if (problem !== undefined) throw new Error(`${problem}\n${trial.output.slice(-4000)}`)
      expect(readNoticed().noticed[name]).toEqual(expect.arrayContaining([...noticed]))
    },
  )
})
