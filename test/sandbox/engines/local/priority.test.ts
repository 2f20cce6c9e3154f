import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { requireLocalEngine } from '../../../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const MAIN = join(import.meta.dirname, '../../../../src/cli/main.ts')

// Beside programs that use all processors, it gets hardly any time.
test.skipIf(skip)(
  'a host of the lowest priority runs and checks scripts without raising a priority',
  { timeout: 300_000 },
  () => {
    const run = ['run', '-', '--engine', 'local', '--policy', 'standard', '--timeout', '240']
    const args = ['-n', '19', process.execPath, MAIN, ...run]
    expect(execFileSync('nice', args, { input: 'emit_result(6 * 7)', encoding: 'utf8' })).toBe('42\n')
  },
)
