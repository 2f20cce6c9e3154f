import { expect, test } from 'vitest'
import { isWholeCell } from '../../../src/cli/python-lines.ts'

test.for([
  'x = 1',
  'f(1, (2))',
  '# a comment with (',
  "'('",
  '"""a\nb"""',
  "'it\\'s'",
  'def f():\n    return 1\n',
  'for x in y:\n    pass\n',
  '(1,\n 2)\n',
  "'open",
  '1)',
  '',
])('a cell is whole: %j', (text) => {
  expect(isWholeCell(text)).toBe(true)
})

test.for([
  'f(',
  'x = [1,',
  '"""a',
  "'''a\n'",
  'def f():',
  'def f():\n    return 1',
  '@cache',
  'if x:  # why',
  'x = 1 + \\',
])('a cell goes on: %j', (text) => {
  expect(isWholeCell(text)).toBe(false)
})
