import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { addedFiles } from '../../../src/environments/byte-code.ts'
import { addByteCode, addHomeFiles } from '../../../src/environments/index.ts'
import { filesBelow, findDifferences, tidyContent } from '../../../src/environments/content.ts'
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

test.each([
  [['pandas>=2'], '"pandas>=2"'],
  [['numpy', 3], '3'],
  [[''], '""'],
])('environments.allow: %j is no list of names', (allow, shown) => {
  const environments = { cacheDir: '/nonexistent', allow: allow as string[] }
  expect(() => new Dependencies('unit', { environments })).toThrow(
    `environments.allow: ${shown} is not the name of a package, without a version`,
  )
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
  const packages = join(directory(), 'packages')
  for (const name of ['bad', 'good']) mkdirSync(join(packages, name), { recursive: true })
  writeFileSync(join(packages, 'bad/__pycache__'), '')
  const sources = ['bad', 'good'].map((name) => ({ path: `${name}/__init__.py`, bytes: 1 }))
  await addByteCode(packages, sources, byteCode('x', 'y'), TARGET)
  expect(readdirSync(join(packages, 'good/__pycache__'))).toEqual(['__init__.cpython-312.pyc'])
})

test('byte code that cannot be put in its place leaves no other file', async () => {
  const packages = join(directory(), 'packages')
  mkdirSync(join(packages, 'demo/__pycache__/__init__.cpython-312.pyc'), { recursive: true })
  const sources = [{ path: 'demo/__init__.py', bytes: 1 }]
  await expect(addByteCode(packages, sources, byteCode('x'), TARGET)).rejects.toMatchObject({ code: 'EISDIR' })
  expect(readdirSync(join(packages, 'demo/__pycache__'))).toEqual(['__init__.cpython-312.pyc'])
})

test('byte code and home files that were changed, or that nobody made here, are differences', async () => {
  const packages = join(directory(), 'packages')
  mkdirSync(join(packages, 'demo'), { recursive: true })
  mkdirSync(join(packages, 'demo-1.dist-info'))
  writeFileSync(join(packages, 'demo/__init__.py'), '')
  writeFileSync(join(packages, 'demo-1.dist-info/RECORD'), 'demo/__init__.py,,\ndemo-1.dist-info/RECORD,,\n')
  const { manifest } = await tidyContent(packages)
  const sources = [{ path: 'demo/__init__.py', bytes: 1 }]
  // Twice: two processes may make the same, and the bytes may differ.
  await addByteCode(packages, sources, byteCode('x'), TARGET)
  await addByteCode(packages, sources, byteCode('y'), TARGET)
  await addHomeFiles(packages, [{ path: '.cache/fonts', content: byteCode() }])
  const differences = async (): Promise<unknown> => findDifferences(packages, manifest, await addedFiles(packages))
  expect(await differences()).toEqual([])
  const made = 'demo/__pycache__/__init__.cpython-312.pyc'
  writeFileSync(join(packages, made), 'evil')
  writeFileSync(join(packages, 'demo/__pycache__/other.cpython-312.pyc'), 'evil')
  writeFileSync(join(packages, '.sandglass/home/.cache/fonts'), 'evil')
  expect(await differences()).toEqual([
    { path: '.sandglass/home/.cache/fonts', problem: 'changed' },
    { path: made, problem: 'changed' },
    { path: 'demo/__pycache__/other.cpython-312.pyc', problem: 'added' },
  ])
})
