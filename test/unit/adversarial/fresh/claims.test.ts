import { expect, test } from 'vitest'
import { FRESH } from '../../../../campaigns/adversarial/fresh/cases/index.ts'
import { wordsOf } from '../../../../campaigns/adversarial/fresh/suite.ts'

const CASES = FRESH.flatMap(([, cases]) => cases)

test('each attack quotes a text of SECURITY.md or of the page that it names', () => {
  const pages = new Map(
    [...new Set(CASES.map(({ claimIn }) => claimIn ?? 'SECURITY.md'))].map((page) => [page, wordsOf(page)]),
  )
  const gone = CASES.filter(({ claim, claimIn }) => pages.get(claimIn ?? 'SECURITY.md')?.includes(claim) !== true)
  expect(gone.map(({ id, claim }) => [id, claim])).toEqual([])
})

test('each attack has an id of its own, and there are at least sixty', () => {
  expect(new Set(CASES.map(({ id }) => id)).size).toBe(CASES.length)
  expect(CASES.length).toBeGreaterThanOrEqual(60)
})
