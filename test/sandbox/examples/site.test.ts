import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const MAIN = join(import.meta.dirname, '../../../examples/site/main.ts')

test.skipIf(skip)('the example site serves a page that a script changes, beside a terminal', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, '--engine', 'local'])
  expect(stdout.match(/^GET .*$/gm)).toEqual(['GET /  <h1>first</h1>', 'GET /  <h1>second</h1>'])
  const terminal = ['$ ls site; wc -c site/index.html', 'index.html', '15 site/index.html', 'a script changed']
  expect(stdout.replaceAll(/^(terminal)? +/gm, '')).toContain(terminal.join('\n'))
  expect(stdout).toContain('log of the server: 2 requests')
})
