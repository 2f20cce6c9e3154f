import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { killWriters } from '../../../campaigns/kills/kill-writers.ts'

test('FS-037 writers that are killed lose nothing acknowledged, and leave nothing half', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'store-'))
  try {
    const { saved, problems } = await killWriters(directory, 6)
    expect(problems).toEqual([])
    expect(saved).toBeGreaterThanOrEqual(6)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
