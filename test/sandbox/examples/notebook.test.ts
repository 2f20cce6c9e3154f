import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { lacksIndex } from '../../support/environments/real-index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const MAIN = join(import.meta.dirname, '../../../examples/notebook/main.ts')

/** Its packages are those of the example report, so that one of the two installs them. */
test.skipIf(skip || lacksIndex)(
  'the example notebook keeps its table through a crash and a timeout, and draws it',
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sandglass-notebook-'))
    try {
      const { stdout } = await promisify(execFile)(process.execPath, [MAIN, '--engine', 'local'], { cwd: directory })
      const outcomes = stdout.match(/(?<=^ {4}# ).*$/gm) ?? []
      expect(outcomes.map((line) => line.replace(/ in \d+ ms/, ''))).toEqual([
        'step-done: 605',
        "crashed: rolled-back, the script's process was killed by SIGSEGV",
        'timed-out: rolled-back, Script timed out after 1s',
        'step-done: [120,95,180,210]',
        'step-done: null',
      ])
      expect(readFileSync(join(directory, 'notebook.png')).toString('latin1')).toMatch(/^\u0089PNG/)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  },
)
