import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { sharedCache } from '../../../support/engines/pyodide/shared-cache.ts'
import { engineAt, place, runOn, SPEC } from './fixture.ts'

const cache = sharedCache()
afterAll(() => cache[Symbol.dispose]())

test('modules of `packages` are preloaded and cannot be changed; failures to load are reported', async () => {
  using packages = place()
  mkdirSync(join(packages.path, 'sg_plain'))
  writeFileSync(join(packages.path, 'sg_plain/__init__.py'), 'from .inner import VALUE\n')
  writeFileSync(join(packages.path, 'sg_plain/inner.py'), 'VALUE = 41\n')
  writeFileSync(join(packages.path, 'sg_broken.py'), 'raise ValueError("broken")\n')
  const engine = engineAt(cache.path)
  const spec = { packages: packages.path, preload: ['json', 'sg_plain', 'sg_broken', 'sg_missing'] }
  await using sandbox = await engine.create({ ...SPEC, ...spec })
  expect(sandbox.ready.preload).toEqual({
    loaded: ['json', 'sg_plain'],
    failed: [
      { name: 'sg_broken', message: 'ValueError: broken' },
      { name: 'sg_missing', message: "ModuleNotFoundError: No module named 'sg_missing'" },
    ],
    deferred: [],
  })
  const script = `
import os, sys
ahead = 'sg_plain' in sys.modules
import sg_plain
try:
    open(os.path.dirname(sg_plain.__file__) + '/new', 'w')
    written = True
except OSError:
    written = False
emit_result([ahead, sg_plain.VALUE, written])
`
  expect((await runOn(engine, script, { spec })).finalData).toEqual([true, 41, false])
})

test('a missing directory of packages is an error that names it', async () => {
  const engine = engineAt(cache.path)
  await expect(engine.create({ ...SPEC, packages: '/no/such/place' })).rejects.toMatchObject({
    code: 'packages_unreadable',
    message: expect.stringContaining('/no/such/place') as string,
  })
})

test('wheels of a directory can be imported, packed or not, and an invalid wheel is an error that names it', async () => {
  using wheels = place()
  const pack = `import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.writestr('sg_wheel/__init__.py', 'from .part import VALUE\\n' + '# ' + 'x' * 10_000, zipfile.ZIP_DEFLATED)
    wheel.writestr('sg_wheel/part.py', 'VALUE = 7\\n', zipfile.ZIP_STORED)`
  execFileSync('python3', ['-c', pack, join(wheels.path, 'sg_wheel-1.0-py3-none-any.whl')])
  const engine = engineAt(cache.path, { wheels: wheels.path })
  expect((await runOn(engine, 'import sg_wheel\nemit_result(sg_wheel.VALUE)')).finalData).toBe(7)
  writeFileSync(join(wheels.path, 'broken.whl'), 'no zip')
  await expect(engineAt(cache.path, { wheels: wheels.path }).create(SPEC)).rejects.toMatchObject({
    code: 'packages_unreadable',
    message: expect.stringContaining('broken.whl') as string,
  })
})

/** A wheel from PyPI with WebAssembly for this version of Pyodide. */
const NATIVE = {
  name: 'msgpack-1.2.4-cp314-cp314-pyemscripten_2026_0_wasm32.whl',
  sha256: '06a0657a4110d563255006b7cb7147432f67827144e429c2cdb1c967548d1817',
} as const

test('a wheel with WebAssembly is loaded by its digest, and other WebAssembly is not', async ({ skip }) => {
  using wheels = place()
  const content = await fromPyPI('msgpack', NATIVE)
  if (typeof content === 'string') return skip(`${NATIVE.name} cannot be had: ${content}`)
  writeFileSync(join(wheels.path, NATIVE.name), content)
  const engine = engineAt(cache.path, { wheels: wheels.path })
  const script = `
import importlib.util, os
from msgpack import _cmsgpack
whole = _cmsgpack.unpackb(_cmsgpack.Packer().pack({'a': [1, 2.5, None]}))
path = _cmsgpack.__file__
with open(path, 'rb') as file:
    module = bytearray(file.read())
module[-1] ^= 1
with open('/tmp/_cmsgpack.so', 'wb') as file:
    file.write(module)
spec = importlib.util.spec_from_file_location('_cmsgpack', '/tmp/_cmsgpack.so')
try:
    importlib.util.module_from_spec(spec)
    emit_result([whole, 'loaded'])
except ImportError:
    emit_result([whole, 'refused'])
`
  expect((await runOn(engine, script)).finalData).toEqual([{ a: [1, 2.5, null] }, 'refused'])
}, 60_000)

/** Downloads a file of a package, or returns the reason why it is missing. */
async function fromPyPI(
  project: string,
  { name, sha256 }: { readonly name: string; readonly sha256: string },
): Promise<Uint8Array | string> {
  try {
    const headers = { accept: 'application/vnd.pypi.simple.v1+json' }
    const page = await fetch(`https://pypi.org/simple/${project}/`, { headers, signal: AbortSignal.timeout(20_000) })
    const { files } = (await page.json()) as { files: { filename: string; url: string }[] }
    const url = files.find(({ filename }) => filename === name)?.url
    if (url === undefined) return 'it is not listed'
    const answer = await fetch(url, { signal: AbortSignal.timeout(20_000) })
    const content = new Uint8Array(await answer.arrayBuffer())
    const digest = createHash('sha256').update(content).digest('hex')
    return digest === sha256 ? content : `its digest is ${digest}`
  } catch (error) {
    return `PyPI cannot be reached: ${String(error)}`
  }
}
