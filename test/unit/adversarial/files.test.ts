import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { filesOf } from '../../../campaigns/adversarial/files.ts'
import { MACHINE_ENGINES } from '../../support/walls.ts'

const HERE = join(import.meta.dirname, '../../campaign/adversarial')

test('the files of all engines together are all files that run scripts on an engine', () => {
  const named = filesOf(MACHINE_ENGINES)
  const all = readdirSync(HERE, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => join('test/campaign/adversarial', file))
  const about = all.filter((file) => MACHINE_ENGINES.some((engine) => file.includes(engine)))
  expect(about.filter((file) => !named.some((name) => file.startsWith(name)))).toEqual([])
  expect(named.filter((name) => !about.some((file) => file.startsWith(name)))).toEqual([])
  expect(all.every((file) => file.startsWith(filesOf()[0] ?? ''))).toBe(true)
})

test('in the full form, vitest also gets the other suites of the same engines', () => {
  expect(filesOf(['local', 'docker'], { withOthers: true })).toEqual([
    'test/campaign/adversarial/local/',
    'test/campaign/adversarial/docker/',
    'test/sandbox/conformance/local.test.ts',
    'test/sandbox/tools/',
    'test/sandbox/orchestrator/',
    'test/daemon/conformance/',
    'test/daemon/tools/',
    'test/daemon/orchestrator/',
  ])
  const all = filesOf(undefined, { withOthers: true })
  expect(all.filter((path) => !existsSync(join(import.meta.dirname, '../../..', path)))).toEqual([])
  expect(all).toHaveLength(9)
})
