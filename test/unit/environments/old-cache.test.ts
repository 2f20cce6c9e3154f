import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Environments } from '../../../src/environments/index.ts'

const KEY = '0123456789abcdef0123'
const target = { python: '3.12.4', abi: 'cpython-312-x86_64-linux-gnu', libc: 'glibc 2.36' }
const declaration = { target, requirements: [], host: [], fromScript: false }
const whole = { key: KEY, target, declaration, packages: {}, modules: [], bytes: 0, directory: 'packages-01234567' }

test.each([
  ['no target', { ...whole, target: undefined }],
  ['no declaration', { ...whole, declaration: undefined }],
  ['null as declaration', { ...whole, declaration: null }],
  ['a part of a declaration', { ...whole, declaration: { target } }],
  ['null', null],
  ['a list', []],
])('a record of an environment with %s counts as missing', async (_what, record) => {
  const cacheDir = mkdtempSync(join(tmpdir(), 'sandglass-old-cache-'))
  try {
    const directory = join(cacheDir, 'environments', KEY)
    mkdirSync(directory, { recursive: true })
    const environments = new Environments({ cacheDir })
    writeFileSync(join(directory, 'record.json'), JSON.stringify(whole))
    expect(await environments.list()).toHaveLength(1)
    writeFileSync(join(directory, 'record.json'), JSON.stringify(record))
    expect([await environments.list(), await environments.update(KEY, {})]).toEqual([[], undefined])
    environments.close()
  } finally {
    rmSync(cacheDir, { recursive: true })
  }
})
