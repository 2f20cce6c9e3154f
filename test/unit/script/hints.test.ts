import { describe, expect, test } from 'vitest'
import { feedbackOn } from '../../../src/script/feedback.ts'
import { hintsFor } from '../../../src/script/hints.ts'
import { ERRORS } from './python-errors.ts'

const FIELDS = ['id', 'name', 'total']

describe('hints on errors at run time (OR-12)', () => {
  test.each(ERRORS)('%s', (_, error, words) => {
    const hints = hintsFor({ error, violations: [], traceback: null }, FIELDS)
    expect(hints).toHaveLength(1)
    for (const word of words) expect(hints[0]).toContain(word)
  })

  test('an unknown error has no hint', () => {
    for (const error of ['AssertionError', 'Oops: memory of a friend', 'KeyError']) {
      expect(hintsFor({ error, violations: [], traceback: null }, FIELDS)).toEqual([])
    }
  })

  test('fields of the tools are listed if none is similar, and an existing field is not suggested for itself', () => {
    expect(hintsFor({ error: "KeyError: 'zzzzzzzz'", violations: [], traceback: null }, FIELDS)[0]).toContain(
      'Fields in the results of the functions: id, name, total.',
    )
    expect(hintsFor({ error: "KeyError: 'name'", violations: [], traceback: null }, FIELDS)[0]).not.toContain(
      'Did you mean',
    )
    expect(hintsFor({ error: "KeyError: 'x'", violations: [], traceback: null }, [])[0]).not.toContain('Fields')
  })

  test('only the first line of an error is used', () => {
    expect(hintsFor({ error: "ValueError: bad\nKeyError: 'x'", violations: [], traceback: null }, FIELDS)).toEqual([])
  })

  test('violations have their own hints', () => {
    const violations = [{ code: 'unknown_name', line: 1, column: 0, message: "'x' is not defined", hint: 'Assign x.' }]
    expect(hintsFor({ error: "NameError: name 'x' is not defined", violations, traceback: null }, [])).toEqual([])
    const told = feedbackOn({
      script: 'x',
      error: '',
      traceback: null,
      violations,
      stdout: '',
      stderr: '',
      failedCalls: [],
      writes: [],
      uncertainWrites: [],
      warnings: [],
      repetition: null,
    })
    expect(told).toContain("- line 1: 'x' is not defined (unknown_name)\n  | x\n  | ^\n  Hint: Assign x.")
  })

  test.each([
    [
      'its own key',
      "KeyError: 'id'",
      ['<script>", line 1, in <module>', '<tool price>", line 2, in price'],
      'the function price',
    ],
    [
      'what it called',
      'json.decoder.JSONDecodeError: Expecting value',
      [
        '<script>", line 1, in <module>',
        '<tool price>", line 2, in price',
        '/usr/lib/python3.12/json/decoder.py", line 9, in f',
      ],
      'the function price',
    ],
    [
      'a file of tools',
      'ZeroDivisionError: division by zero',
      ['<script>", line 1, in f', '/tools/shop.py", line 4, in p'],
      'a function of shop.py',
    ],
  ])('an error inside a Python tool is not blamed on the script: %s', (_, error, frames, named) => {
    const hints = hintsFor({ error, violations: [], traceback: tracebackOf(frames, error) }, FIELDS)
    expect(hints).toEqual([
      `the error is inside ${named}, which the script cannot change. Check the arguments of the call, or catch the exception if the script can continue without the result.`,
    ])
  })

  test("an error in an argument for a Python tool, or after a failed call, is the script's own", () => {
    const error = "KeyError: 'id'"
    const passed = ['<script>", line 1, in <module>', '<tool price>", line 2, in price', '<script>", line 3, in key']
    const after =
      tracebackOf(['<script>", line 1, in <module>', '<tool price>", line 2, in price'], error) +
      '\nDuring handling of the above exception, another exception occurred:\n\n' +
      tracebackOf(['<script>", line 4, in <module>'], error)
    for (const traceback of [tracebackOf(passed, error), after]) {
      expect(hintsFor({ error, violations: [], traceback }, FIELDS)).toEqual([
        expect.stringContaining('the dict has no key "id"') as string,
      ])
    }
  })

  test('a limit that a Python tool reached has the hint of the limit', () => {
    const traceback = tracebackOf(['<script>", line 1, in <module>', '<tool price>", line 2, in price'], '')
    const [hint] = hintsFor({ error: 'Script timed out after 2s', violations: [], traceback }, FIELDS)
    expect(hint).toContain('the script took too long')
  })
})

function tracebackOf(frames: readonly string[], error: string): string {
  const lines = frames.map((frame) => `  File "${frame}\n    code\n`)
  return `Traceback (most recent call last):\n${lines.join('')}${error}\n`
}
