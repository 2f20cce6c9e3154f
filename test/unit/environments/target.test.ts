import { expect, test } from 'vitest'
import { describeTarget, interpreterInfo, platformOf, type PythonTarget } from '../../../src/environments/target.ts'

const target = (abi: string, libc: string): PythonTarget => ({ python: '3.12.4', abi, libc })

test.each([
  ['cpython-312-x86_64-linux-gnu', 'glibc 2.41', { os: { name: 'manylinux', major: 2, minor: 41 }, arch: 'x86_64' }],
  ['cpython-312-aarch64-linux-gnu', 'glibc 2.17', { os: { name: 'manylinux', major: 2, minor: 17 }, arch: 'aarch64' }],
  ['cpython-312-x86_64-linux-musl', 'musl', { os: { name: 'musllinux', major: 1, minor: 2 }, arch: 'x86_64' }],
  ['cpython-312-x86_64-linux-gnu', '', { os: { name: 'manylinux', major: 2, minor: 17 }, arch: 'x86_64' }],
  [
    'cpython-314-wasm32-emscripten',
    'pyemscripten 2026.0',
    { os: { name: 'pyemscripten', major: 2026, minor: 0 }, arch: 'wasm32' },
  ],
  ['cpython-314-wasm32-emscripten', '', undefined],
  ['cpython-312-darwin', '', undefined],
])('wheels are chosen by %s and %s', (abi, libc, platform) => {
  expect(platformOf(target(abi, libc))).toEqual(platform)
})

test('the fake interpreter reports the Python of the sandbox', () => {
  const info: unknown = JSON.parse(
    interpreterInfo(target('cpython-313t-x86_64-linux-gnu', 'glibc 2.36'), '/x/python3') ?? '',
  )
  expect(info).toMatchObject({ arch: 'x86_64', gil_disabled: true, pointer_size: '64', sys_executable: '/x/python3' })
  expect(interpreterInfo(target('cpython-312-darwin', ''), '/x')).toBeUndefined()
})

test('a target has a description', () => {
  expect(describeTarget(target('cpython-312-x86_64-linux-gnu', 'glibc 2.41'))).toBe(
    'Python 3.12.4 on Linux x86_64 (glibc 2.41)',
  )
  expect(describeTarget(target('cpython-314-wasm32-emscripten', 'pyemscripten 2026.0'))).toBe(
    'Python 3.12.4 on WebAssembly',
  )
})
