import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { checkRestart, checkTwoReviewers } from '../../support/code-agent/restart-rules.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const directory = mkdtempSync(join(tmpdir(), 'sqlite-'))
const store = join(directory, 'threads.sqlite')
afterAll(() => rmSync(directory, { recursive: true }))

describe.skipIf(skip)('CA-10 a code agent on SQLite', () => {
  test('whose process is killed goes on in another one, and runs no script twice', async () => {
    await expect(checkRestart(store)).resolves.toBeUndefined()
  })

  test('takes one of two answers from two processes, and tells the other', async () => {
    await expect(checkTwoReviewers(store)).resolves.toBeUndefined()
  })
})
