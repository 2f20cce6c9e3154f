import { describe, expect, test } from 'vitest'
import { identifier, isIdentifier, toolName } from '../../../src/tools/python-name.ts'

describe('the name of a tool in a script', () => {
  test.each([
    ['search', 'search'],
    ['get-user', 'get_user'],
    ['a.b', 'a_b'],
    ['files/read all', 'files_read_all'],
    ['class', 'class_'],
    ['1st', '_1st'],
    ['match', 'match'],
    ['a\u0000b', 'a_b'],
    // Python reads the full-width letter as the plain one.
    ['\uFF46etch', 'fetch'],
  ])('%s is %s', (given, name) => {
    expect(toolName(given)).toBe(name)
  })

  // RPC-016, RPC-017
  test.each([
    ['', 'a tool has an empty name'],
    ['x'.repeat(65), `the tool name "${'x'.repeat(64)}…" has 65 characters; at most 64 are allowed`],
    ['emit_result', 'the tool name "emit_result" is reserved for a helper of scripts; rename the tool'],
    ['ToolError', 'the tool name "ToolError" is reserved for a helper of scripts; rename the tool'],
    ['print', 'the tool name "print" is reserved for a builtin of Python; rename the tool'],
    ['None', 'the tool name "None" is reserved for a builtin of Python; rename the tool'],
    ['\uFF50rint', 'the tool name "\uFF50rint" is reserved for a builtin of Python; rename the tool'],
    ['__import__', 'the tool name "__import__" is reserved for Python; rename the tool'],
    ['--', 'the tool name "--" has no letter and no digit'],
    ['f\u0435tch', 'the tool name "f\u0435tch" holds "\u0435": use ASCII letters, digits and _'],
  ])('%j is refused', (given, message) => {
    expect(() => toolName(given)).toThrow(new TypeError(message))
  })
})

test.each([
  ['from', 'from_', false],
  ['$filter', '_filter', false],
  ['größe', 'größe', true],
  ['x y', 'x_y', false],
  ['', '_', false],
  ['2d', '_2d', false],
  ['__debug__', '__debug___', false],
  ['ok_1', 'ok_1', true],
])('the parameter %j is written %s', (key, name, own) => {
  expect({ name: identifier(key), own: isIdentifier(key) }).toEqual({ name, own })
})
