import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { requireDockerEngine } from '../support/docker-engine.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const { skip } = await requireDockerEngine()

test.skipIf(skip)('README runs a script in a container with the line that it gives', () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const [line = ''] = /^echo .* --engine docker$/m.exec(readme) ?? []
  const program = [process.execPath, join(ROOT, 'src/cli/main.ts')].map((word) => `'${word}'`).join(' ')
  const command = line.replace('| sandglass ', `| ${program} `)
  expect(execFileSync('sh', ['-c', command], { encoding: 'utf8' })).toBe('45\n')
})
