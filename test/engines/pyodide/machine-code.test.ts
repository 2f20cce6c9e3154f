import { expect, test, vi } from 'vitest'
import { machineCodeOf, moduleOf } from '../../../src/engines/pyodide/guest/machine-code.ts'

// A V8 that does not know the functions of its own tests: what calls them is no JavaScript then.
vi.mock('node:v8', () => ({ setFlagsFromString: () => undefined }))

test('where V8 has no way to take machine code, there is no module of it', () => {
  expect(moduleOf(new ArrayBuffer(8), new Uint8Array(8))).toBe(undefined)
})

test('where V8 has no way to give machine code away, that is an error', () => {
  expect(() => machineCodeOf({})).toThrow(SyntaxError)
})
