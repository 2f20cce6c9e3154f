import { describe, expect, test } from 'vitest'
import { pyodideLinks } from '../../../src/environments/pyodide-packages.ts'

const PYODIDE = { python: '3.14.2', abi: 'cpython-314-wasm32-emscripten', libc: 'pyemscripten 2026.0' }

describe('links to the packages of Pyodide', () => {
  test('name each wheel below the address, with the digest that the npm package lists', () => {
    const page = pyodideLinks('https://mirror.example/full', PYODIDE) ?? ''
    expect(page).toMatch(
      /<a href="https:\/\/mirror\.example\/full\/numpy-2\.[\d.]+-cp314-cp314-pyemscripten_2026_0_wasm32\.whl#sha256=[0-9a-f]{64}">/,
    )
    expect(page).not.toContain('.zip')
  })

  test('are not made for other targets', () => {
    const linux = { python: '3.11.2', abi: 'cpython-311-x86_64-linux-gnu', libc: 'glibc 2.36' }
    expect(pyodideLinks('https://mirror.example/full', linux)).toBeUndefined()
    expect(() => pyodideLinks('https://mirror.example/full', { ...PYODIDE, libc: 'pyemscripten 2025.0' })).toThrow(
      expect.objectContaining({ code: 'pyodide_missing' }),
    )
  })

  test('an address is escaped in its attribute', () => {
    expect(pyodideLinks('https://mirror.example/"><script>/', PYODIDE)).not.toContain('<script>')
  })
})
