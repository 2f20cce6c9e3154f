import { expect, test } from 'vitest'
import { pyodideEngine, type PyodideEngineOptions } from '../../../../src/engines/pyodide/index.ts'

test.each([
  [{ reserveBytes: -1 }, 'pyodide.reserveBytes: must be a whole number of bytes from 0, not -1'],
  [{ reserveBytes: 0.5 }, 'pyodide.reserveBytes: must be a whole number of bytes from 0, not 0.5'],
  [{ reserveBytes: '1' as never }, 'pyodide.reserveBytes: must be a whole number of bytes from 0, not "1"'],
  [{ reserveByte: 0 } as PyodideEngineOptions, 'pyodide.reserveByte: unknown option. Did you mean "reserveBytes"?'],
])('options that are wrong are refused by name: %o', (options, message) => {
  expect(() => pyodideEngine(options)).toThrow(new TypeError(message))
})

test('a reserve of 0 bytes is an option', () => {
  expect(pyodideEngine({ reserveBytes: 0 }).name).toBe('pyodide')
})
