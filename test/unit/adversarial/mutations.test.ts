import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ROOT } from '../../../campaigns/adversarial/mutations/copy.ts'
import { type TestSelection, patched } from '../../../campaigns/adversarial/mutations/mutation.ts'
import { MUTATIONS } from '../../../campaigns/adversarial/mutations/mutations.ts'
import { readNoticed, withSection } from '../../../campaigns/adversarial/mutations/noticed.ts'
import { verdictOn } from '../../../campaigns/adversarial/mutations/verdict.ts'

describe('the record of tests that detect a missing defence', () => {
  const { noticed } = readNoticed()

  test('names a failing test for each defence', () => {
    expect(MUTATIONS.length).toBeGreaterThanOrEqual(13)
    expect(Object.keys(noticed)).toEqual(MUTATIONS.map(({ name }) => name))
    expect(Object.entries(noticed).filter(([, names]) => names.length === 0)).toEqual([])
  })

  test('matches SECURITY.md (npm run adversarial -- --mutate --write)', () => {
    const page = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8')
    expect(page).toBe(withSection(page, readNoticed()))
  })
})

test.each(MUTATIONS)('the patch of $name applies to the current tree', ({ patches }) => {
  for (const patch of patches) {
    const text = readFileSync(join(ROOT, patch.file), 'utf8')
    expect(patched(text, patch)).not.toBe(text)
  }
})

describe('a mutation', () => {
  const selected: readonly TestSelection[] = [{ suite: 'supervisor', titles: ['attack'] }]
  const control = { suite: 'cases', title: 'benign-control > OK-001 fine', passed: true } as const
  const attack = { suite: 'supervisor', title: 'an attack', passed: false } as const
  const verdict = (...tests: Parameters<typeof verdictOn>[1]['tests']): object =>
    verdictOn({ selected }, { tests, output: '' })

  test('is noticed by a failed test of its defence if the control tests pass', () => {
    expect(verdict(control, attack)).toEqual({ noticed: ['supervisor: an attack'], problem: undefined })
  })

  test('is not noticed if all tests pass, or only tests of other defences fail', () => {
    const unnoticed = { noticed: [], problem: 'no test notices' }
    expect(verdict(control, { ...attack, passed: true })).toEqual(unnoticed)
    expect(verdict(control, { ...attack, title: 'something else' })).toEqual(unnoticed)
  })

  test('that breaks everything, or has no baseline, is not a proof', () => {
    const noticed = ['supervisor: an attack']
    const problem = 'more than the defence is gone: cases: benign-control > OK-001 fine'
    expect(verdict({ ...control, passed: false }, attack)).toEqual({ noticed, problem })
    expect(verdict(attack)).toEqual({ noticed, problem: 'no control was run' })
  })

  test('whose text is missing in its file, or occurs twice, is refused', () => {
    const patch = { file: 'a.py', from: 'x = 1\n', to: '' }
    expect(() => patched('y = 1\n', patch)).toThrow('a.py holds this 0 times and must hold it once:\nx = 1')
    expect(() => patched('x = 1\nx = 1\n', patch)).toThrow('a.py holds this 2 times')
  })
})
