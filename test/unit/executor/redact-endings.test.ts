import { expect, test } from 'vitest'
import { Redactor } from '../../../src/redaction/index.ts'

const KEY = 'k3y!Zw9~'
const STARTS = ['%', '%25', '\\', '\\\\', '&', '&amp;', '%5c', '&#92;', '\\x5c']
const PARTS = [
  '',
  '0',
  '4',
  '07',
  '25',
  'x',
  'x4',
  'u',
  'u00',
  'u004',
  'U0000004',
  '#',
  '#3',
  '#x2',
  'a',
  'amp',
  'qu',
  'l',
]
const FOLLOWING = [
  '',
  '0',
  '1',
  '25',
  '41',
  'c',
  'f',
  'n',
  'p;',
  'ot;',
  't;',
  '4;',
  ';',
  'x41',
  '#x41;',
  '%',
  '\\',
  '&',
  ' ',
  'z',
]
const WRITERS: Readonly<Record<string, (text: string) => string>> = {
  str: (text) => text,
  'json.dumps': (text) => JSON.stringify(text),
  'json.dumps, twice': (text) => JSON.stringify(JSON.stringify(text)),
  quote: (text) => encodeURIComponent(text),
  'quote, twice': (text) => encodeURIComponent(encodeURIComponent(text)),
  'html.escape': (text) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;'),
  'quote of json.dumps': (text) => encodeURIComponent(JSON.stringify(text)),
}

const ENDS = Object.entries(WRITERS).flatMap(([name, write]) => STARTS.map((start) => ({ name, start, write })))

test.each(ENDS)(
  '$name: an escape from $start that the end of a value and the text after it make together hides neither',
  ({ start, write }) => {
    const shown: string[] = []
    for (const part of PARTS) {
      const value = KEY + start + part
      const redactor = new Redactor({ V: value })
      // Most writers write both the same.
      const texts = new Set(FOLLOWING.flatMap((next) => [write(value + next), write(value) + next]))
      for (const text of texts) {
        const stream = redactor.stream()
        const pieces = Array.from(text, (piece) => stream.push(piece)).join('') + stream.flush()
        if (redactor.text(text).includes(KEY) || pieces.includes(KEY)) shown.push(text)
      }
    }
    expect(shown).toEqual([])
  },
)

test('a value that ends like ordinary text behind an ampersand keeps all of its characters', () => {
  const redactor = new Redactor({ V: 'user&abcdefghijkl' })
  expect(redactor.text('user&abcdefghijkl user')).toBe('[redacted:V] user')
})
