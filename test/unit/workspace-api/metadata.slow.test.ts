import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadMetadata, updateMetadata } from '../../../src/workspace-api/index.ts'
import { withRecord } from '../../../src/workspace-api/metadata.ts'

// Each of them starts a program for its lock.
test('WS-24: 24 concurrent read-modify-writes under the lock: 24 records, none lost', async () => {
  const root = mkdtempSync(join(tmpdir(), 'sandglass-metadata-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  const names = Array.from({ length: 24 }, (_, index) => `host:///${index}`)
  const record = (from: string) => ({ from, to: 'x', timestamp: new Date(0) })
  await Promise.all(names.map((name) => updateMetadata(root, (now) => withRecord(now, 'inputs', record(name)))))
  const { inputs } = await loadMetadata(root)
  expect(inputs.map(({ from }) => from).toSorted()).toEqual(names.toSorted())
})
