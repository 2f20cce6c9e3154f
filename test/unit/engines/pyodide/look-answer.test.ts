import { expect, test } from 'vitest'
import { parseLookAnswer } from '../../../../src/engines/pyodide/workspace/look-answer.ts'

const line = (frame: unknown): Uint8Array => Buffer.from(JSON.stringify(frame))

test('of variables that an instance lists, what is not as it must be is left out', () => {
  const sound = { name: 'x', type: 'list', shape: [1], bytes: 60 }
  const found = [
    sound,
    null,
    'x',
    { name: 1, type: 'int' },
    { name: 'y'.repeat(500), type: 'ndarray', shape: [1, 2, 3, 4, 5], bytes: -1 },
    { name: 'z', type: 'ndarray', shape: [1, 'x'], bytes: 1.5 },
  ]
  const listed = parseLookAnswer(line({ type: 'looked', found }), true) as readonly { readonly name: string }[]
  expect(listed).toMatchObject([sound, { shape: null, bytes: null }, { name: 'z', shape: null, bytes: null }])
  expect(listed[1]?.name.length).toBeLessThan(300)
  expect(
    parseLookAnswer(line({ type: 'looked', found: Array.from({ length: 500 }, () => 'name') }), false),
  ).toHaveLength(400)
  expect(parseLookAnswer(line({ type: 'looked', found: ['a', 1, null] }), false)).toEqual(['a'])
})

test.each([
  ['no line', undefined, ''],
  ['no JSON', Buffer.from('{'), ''],
  ['another frame', line({ type: 'log', found: [] }), ''],
  ['no list', line({ type: 'looked', found: 'all' }), ''],
  ['null', line(null), ''],
  ['an error', line({ type: 'looked', error: 'ScriptTimeout: ' }), ': ScriptTimeout: '],
])('an answer that is %s is none', (_, given, why) => {
  const message = `the process of the session did not answer${why}`
  expect(parseLookAnswer(given, true)).toEqual({ code: 'io', message })
})
