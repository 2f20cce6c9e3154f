import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import type { SandglassError } from '../../../src/errors/index.ts'
import { assertPackagesFit, installedPackages, type Sandbox } from '../../../src/sandbox/index.ts'

const checks = { abi: 'cpython-311-x86_64-linux-gnu' }
const SANDBOX = { info: { engine: 'local', python: '3.11.2' }, ready: { checks } as unknown as Sandbox['ready'] }

const made: string[] = []
afterEach(() => made.splice(0).forEach((path) => rmSync(path, { recursive: true })))

function directoryWith(wheels: Readonly<Record<string, string | undefined>>): string {
  const path = mkdtempSync(join(tmpdir(), 'sandglass-packages-'))
  made.push(path)
  for (const [name, wheel] of Object.entries(wheels)) {
    mkdirSync(join(path, name))
    if (wheel !== undefined) writeFileSync(join(path, name, 'WHEEL'), wheel)
  }
  return path
}

test('the packages of a directory are listed with their versions and target platforms', async () => {
  const directory = directoryWith({
    'numpy-2.4.6.dist-info':
      'Wheel-Version: 1.0\nTag: cp311-cp311-manylinux_2_27_x86_64\nTag: cp311-cp311-linux_x86_64\r\n',
    numpy: undefined,
    'six-1.17.0.dist-info': undefined,
    'not a name-1.dist-info': undefined,
  })
  expect(await installedPackages(directory)).toEqual([
    { name: 'numpy', version: '2.4.6', tags: ['cp311-cp311-manylinux_2_27_x86_64', 'cp311-cp311-linux_x86_64'] },
    { name: 'six', version: '1.17.0', tags: [] },
  ])
  expect(await installedPackages('/no/such/place')).toEqual([])
})

test.each<[boolean, readonly string[]]>([
  [true, []],
  [true, ['py3-none-any']],
  [true, ['py2.py3-none-any']],
  [true, ['py311-none-any']],
  [true, ['cp311-cp311-manylinux_2_28_x86_64']],
  [true, ['cp311-none-any']],
  [true, ['cp38-abi3-manylinux_2_17_x86_64']],
  [true, ['cp311-cp311-manylinux_2_17_i686']],
  [true, ['py3-none-manylinux2014_x86_64']],
  [true, ['cp312-cp312-linux_x86_64', 'cp311-cp311-linux_x86_64']],
  [false, ['cp312-cp312-manylinux_2_28_x86_64']],
  [false, ['cp310-cp310-manylinux_2_28_x86_64']],
  [false, ['cp311-cp311t-manylinux_2_28_x86_64']],
  [false, ['cp312-abi3-manylinux_2_17_x86_64']],
  [false, ['py312-none-any']],
  [false, ['py2-none-any']],
  [false, ['cp311-cp311-macosx_11_0_arm64']],
  [false, ['py3-none-win_amd64']],
  [false, ['cp311-cp311-manylinux_2_17_aarch64.manylinux2014_aarch64']],
  [false, ['py3-none-linux_riscv64']],
  [false, ['pp311-pypy311_pp73-linux_x86_64']],
  [false, ['nonsense']],
])('Python 3.11 takes (%j) a package built for %j', (taken, tags) => {
  const outcome = (): string => {
    try {
      assertPackagesFit('/p', [{ name: 'a', version: '1', tags }], SANDBOX)
      return 'taken'
    } catch (error) {
      return (error as SandglassError).code
    }
  }
  expect(outcome()).toBe(taken ? 'taken' : 'packages_do_not_fit')
})

test('the refusal names the first package, and the command that installs a suitable build', () => {
  const packages = ['numpy', 'six', 'pandas'].map((name) => ({
    name,
    version: '2.0',
    tags: [name === 'six' ? 'py3-none-any' : 'cp312-cp312-linux_x86_64'],
  }))
  expect(() => assertPackagesFit('/p', packages, SANDBOX)).toThrow(
    expect.objectContaining({
      code: 'packages_do_not_fit',
      message:
        'packages: numpy 2.0 in /p was built for cp312-cp312-linux_x86_64, and sandboxes of the engine local have Python 3.11 ' +
        'on Linux (x86_64). Install into another directory: python3 -m pip install --target /p-3.11 --python-version 3.11 ' +
        '--only-binary=:all: numpy pandas',
    }) as Error,
  )
})

test('the command names the architecture if a package was built for another one', () => {
  const packages = [{ name: 'a', version: '1', tags: ['cp311-cp311-manylinux_2_17_aarch64'] }]
  expect(() => assertPackagesFit('/p', packages, SANDBOX)).toThrow(
    'install --target /p-3.11 --python-version 3.11 --platform manylinux2014_x86_64 --only-binary=:all: a',
  )
})
