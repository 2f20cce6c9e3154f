import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { addByteCode, addHomeFiles } from '../../../src/environments/index.ts'
import { filesBelow } from '../../../src/environments/content.ts'
import { indexSettings, withoutCredentials } from '../../../src/environments/index-settings.ts'
import { Dependencies } from '../../../src/dependencies.ts'

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'sandglass-bounds-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

test('files of an environment are counted before they are listed', async () => {
  const root = directory()
  mkdirSync(join(root, 'a/b'), { recursive: true })
  for (const name of ['x', 'a/y', 'a/b/z']) writeFileSync(join(root, name), '')
  expect((await filesBelow(root, 5)).map(({ name }) => name).toSorted()).toEqual(['x', 'y', 'z'])
  await expect(filesBelow(root, 4)).rejects.toMatchObject({ code: 'dependency_invalid' })
})

test.each([
  ['https://user:pass@example.com/simple', 'https://example.com/simple'],
  ['https://user:p@ss@example.com/simple', 'https://example.com/simple'],
  ['two=https://a:b@c/ https://d:e@f/', 'two=https://c/ https://f/'],
])('%s is shown without its password', (address, shown) => {
  expect(withoutCredentials(address)).toBe(shown)
  expect(indexSettings({ index: address }, {}).digest).toBe(indexSettings({ index: shown }, {}).digest)
})

test('a script that imports more packages than one set can have is refused before an index is asked', async () => {
  const dependencies = new Dependencies('unit', { environments: { cacheDir: directory(), fromScript: 'imports' } })
  const table = readFileSync(join(import.meta.dirname, '../../../data/known-packages.json.gz'))
  const { imports } = JSON.parse(gunzipSync(table).toString('utf8')) as { imports: Record<string, number[]> }
  const modules = Object.keys(imports).slice(0, 2000)
  const script = modules.map((name) => `import ${name}\n`).join('')
  await expect(dependencies.prepare({ script })).rejects.toMatchObject({
    code: 'dependency_invalid',
    message: expect.stringContaining('256') as string,
  })
})

const TARGET = { python: '3.12.4', abi: 'cpython-312-x86_64-linux-gnu', libc: '' }

function byteCode(...files: readonly string[]): Uint8Array {
  return Buffer.concat(
    files.flatMap((content, at) => {
      const head = Buffer.alloc(8)
      head.writeUInt32LE(at, 0)
      head.writeUInt32LE(content.length, 4)
      return [head, Buffer.from(content)]
    }),
  )
}

test('byte code and home files do not bring a removed environment back', async () => {
  const packages = join(directory(), 'packages')
  const sources = [{ path: 'demo/__init__.py', bytes: 1 }]
  await addByteCode(packages, sources, byteCode('x'), TARGET)
  await addHomeFiles(packages, [{ path: '.cache/x', content: byteCode() }])
  expect(existsSync(packages)).toBe(false)
})

test('byte code is made beside a package that leaves no room for its own', async () => {
  const packages = directory()
  for (const name of ['bad', 'good']) mkdirSync(join(packages, name))
  writeFileSync(join(packages, 'bad/__pycache__'), '')
  const sources = ['bad', 'good'].map((name) => ({ path: `${name}/__init__.py`, bytes: 1 }))
  await addByteCode(packages, sources, byteCode('x', 'y'), TARGET)
  expect(readdirSync(join(packages, 'good/__pycache__'))).toEqual(['__init__.cpython-312.pyc'])
})
