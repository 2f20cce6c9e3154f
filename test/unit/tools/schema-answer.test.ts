import { expect, test } from 'vitest'
import { MAX_ANSWER_CHARS } from '../../../src/judge/index.ts'
import { answer } from '../../../src/tools/schema-answer.ts'

const schema = JSON.stringify({
  $ref: '#/$defs/t',
  $defs: { t: { type: 'object', additionalProperties: { $ref: '#/$defs/t' } } },
})
const nested = (key: string): string =>
  JSON.stringify(Array.from({ length: 15 }).reduce<unknown>((inner) => ({ [key]: inner }), 1))

test.each<[string, string, unknown]>([
  ['is reported with its place', 'k', { path: Array.from({ length: 15 }, () => 'k'), message: 'expected object' }],
  [
    'is told without it where escapes make the text long',
    '\u0001'.repeat(75),
    { message: 'does not match the schema' },
  ],
])('a problem %s', (_, key, issue) => {
  const text = answer({ schema, value: nested(key) })
  // A longer text is cut and no longer valid JSON.
  expect(text.length).toBeLessThanOrEqual(MAX_ANSWER_CHARS)
  expect(JSON.parse(text)).toEqual(issue)
})
