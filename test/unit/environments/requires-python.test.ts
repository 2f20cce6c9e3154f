import { expect, test } from 'vitest'
import { assertPython } from '../../../src/environments/requires-python.ts'

test.each([
  ['>=3.10', '3.11.2'],
  ['>=3.10,<4', '3.11.2'],
  [' >= 3.10 , != 3.11.1 ', '3.11.2'],
  ['==3.11.*', '3.11.2'],
  ['!=3.1.*', '3.11.2'],
  ['~=3.10', '3.11.2'],
  ['~=3.11.0', '3.11.2'],
  ['>3.11', '3.11.2'],
  ['<=3.11.2', '3.11.2'],
  ['==3.11', '3.11.0'],
  ['>=3.14', '3.14.0rc1'],
])('%j admits Python %s', (specifiers, python) => {
  expect(() => assertPython(specifiers, python)).not.toThrow()
})

test.each([
  ['>=3.12', '3.11.2'],
  ['>=3.10,<3.11', '3.11.2'],
  ['==3.11', '3.11.2'],
  ['==3.1.*', '3.11.2'],
  ['!=3.11.*', '3.11.2'],
  ['~=3.10.0', '3.11.2'],
  ['~=2.7', '3.11.2'],
  ['>3.11.2', '3.11.2'],
  ['<3', '3.11.2'],
])('%j refuses Python %s and names both', (specifiers, python) => {
  expect(() => assertPython(specifiers, python)).toThrow(
    expect.objectContaining({
      code: 'dependency_conflict',
      message: expect.stringContaining(`is ${specifiers}, and the sandbox has Python ${python}`) as string,
    }),
  )
})

test.each(['', '3.10', '>=3.x', '>=3.10.*', '~=3', '>=3.10;', '>=', `>=${'1.'.repeat(10_000)}`])(
  '%j is no version specifier',
  (specifiers) => {
    expect(() => assertPython(specifiers, '3.11.2')).toThrow(
      expect.objectContaining({
        code: 'dependency_invalid',
        message: expect.stringContaining('is not a version specifier') as string,
      }),
    )
  },
)
