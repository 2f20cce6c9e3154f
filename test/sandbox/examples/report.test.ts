import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { createArtifactService, storeInDirectory } from '../../../src/artifacts/index.ts'
import { lacksIndex } from '../../support/environments/real-index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const MAIN = join(import.meta.dirname, '../../../examples/report/main.ts')

test.skipIf(skip || lacksIndex)(
  'the example report is killed while it draws, goes on, and saves two artifacts',
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sandglass-report-'))
    try {
      const { stdout } = await promisify(execFile)(process.execPath, [MAIN, '--engine', 'local'], { cwd: directory })
      // The CSV is cleaned once; two processes begin to draw.
      expect(stdout.match(/^ *(?:clean\.py|drawing|it was killed|out\/orders-clean|chart\.py)/gm)).toEqual([
        '  clean.py',
        '  drawing',
        'it was killed',
        'out/orders-clean',
        'drawing',
        'chart.py',
      ])
      const artifacts = createArtifactService(storeInDirectory(join(directory, 'report-store')))
      const saved = await artifacts.list({ session: { sessionId: 'report' } })
      expect(saved.map(({ name, version, mimeType }) => [name, version, mimeType])).toEqual([
        ['out/orders-clean.csv', 0, 'text/csv'],
        ['out/revenue.png', 0, 'image/png'],
      ])
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  },
)
