import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { killPersisting } from '../../campaigns/kills/kill-persisting.ts'
import { killReviews } from '../../campaigns/kills/kill-reviews.ts'
import { requireLocalEngine } from '../support/local-engine.ts'

/* `npm run kills` is the long form, with the writers of artifacts. */

const { skip } = await requireLocalEngine()

describe.skipIf(skip)('the owner of a persisted workspace', () => {
  test.each(['sync', 'restore'] as const)(
    'that is killed at any moment of %s loses nothing acknowledged, and leaves nothing half',
    async (work) => {
      const directory = mkdtempSync(join(tmpdir(), 'kills-'))
      try {
        const { acknowledged, during, problems } = await killPersisting(directory, 3, work)
        console.log(`${work}: ${JSON.stringify(during)}, ${acknowledged} states acknowledged`)
        expect(problems).toEqual([])
        expect(acknowledged).toBeGreaterThan(0)
      } finally {
        rmSync(directory, { recursive: true, force: true })
      }
    },
  )
})

describe.skipIf(skip)('CA-10 a code agent', () => {
  test('that is killed around a review runs no script twice, and loses none', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'kills-'))
    try {
      const { after, ran, uncertain, problems } = await killReviews(join(directory, 'threads.sqlite'), directory, 3)
      console.log(`reviews: ${JSON.stringify(after)}, ${ran} scripts ran, ${uncertain} perhaps`)
      expect(problems).toEqual([])
      expect(ran).toBeGreaterThan(0)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })
})
