import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { engineAt, place, runOn, SPEC } from './bed.ts'

test('modules of `packages` are imported ahead and cannot be changed; what cannot be loaded is told', async () => {
  using cache = place()
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

test('a directory of packages that is not there is an error that names it', async () => {
  using cache = place()
  const engine = engineAt(cache.path)
  await expect(engine.create({ ...SPEC, packages: '/no/such/place' })).rejects.toMatchObject({
    code: 'packages_unreadable',
    message: expect.stringContaining('/no/such/place') as string,
  })
})

test('wheels of a directory are there, packed or not, and one that is none is an error that names it', async () => {
  using cache = place()
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
