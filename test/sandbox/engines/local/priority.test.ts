import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { requireLocalEngine } from '../../../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const MAIN = join(import.meta.dirname, '../../../../src/cli/main.ts')

test.skipIf(skip)('a host of the lowest priority runs and checks scripts without raising a priority', () => {
  const args = ['-n', '19', process.execPath, MAIN, 'run', '-', '--engine', 'local', '--policy', 'standard']
  expect(execFileSync('nice', args, { input: 'emit_result(6 * 7)', encoding: 'utf8' })).toBe('42\n')
})
