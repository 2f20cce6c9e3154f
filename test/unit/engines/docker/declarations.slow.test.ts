import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../../../..')
/** A user's installed packages with the package's dependencies, but without dockerode and its types. */
const INSTALLED = ['ajv', 'zod', '@types/node', 'undici-types']
const USE = `import { createSandglass, dockerEngine, type DockerEngineOptions } from 'sandglass'
import { type DockerSandbox, ManagedContainer, type Sandbox } from 'sandglass/engine'
const options: DockerEngineOptions = { image: 'python:3.12-slim', hostPathMap: { '/app': '/srv/app' } }
const sandglass = await createSandglass({ engine: dockerEngine(options) })
const sandbox: DockerSandbox = await dockerEngine(options).create({ limits: { memoryBytes: 1, cpus: 1, pids: 1, diskBytes: 1 } })
const plain: Sandbox = sandbox
const container: ManagedContainer = sandbox.container
export const facts: readonly unknown[] = [sandglass.engine, plain.id, container.id, container instanceof ManagedContainer]
`

const place = mkdtempSync(join(tmpdir(), 'sandglass-types-'))
afterAll(() => rmSync(place, { recursive: true, force: true }))

function tsc(...args: readonly string[]): string {
  const { status, stdout, error } = spawnSync(join(ROOT, 'node_modules/.bin/tsc'), args, {
    cwd: place,
    encoding: 'utf8',
  })
  return status === 0 ? '' : `${error?.message ?? stdout}`
}

test('a program that uses the engine compiles where dockerode and its types are not installed', () => {
  const home = join(place, 'node_modules/sandglass')
  mkdirSync(join(place, 'node_modules/@types'), { recursive: true })
  for (const name of INSTALLED) symlinkSync(join(ROOT, 'node_modules', name), join(place, 'node_modules', name))
  const emit = ['--declaration', '--emitDeclarationOnly', '--noEmit', 'false', '--outDir', join(home, 'dist')]
  expect(tsc('-p', join(ROOT, 'tsconfig.build.json'), ...emit)).toBe('')
  const exports = { '.': { types: './dist/index.d.ts' }, './engine': { types: './dist/engine.d.ts' } }
  writeFileSync(join(home, 'package.json'), JSON.stringify({ name: 'sandglass', type: 'module', exports }))
  writeFileSync(join(place, 'package.json'), '{"type": "module"}')
  writeFileSync(join(place, 'use.ts'), USE)
  const strict = ['--strict', '--module', 'nodenext', '--target', 'es2023', '--lib', 'es2024,esnext.disposable']
  expect(tsc('--noEmit', '--skipLibCheck', 'false', '--types', 'node', ...strict, 'use.ts')).toBe('')
})
