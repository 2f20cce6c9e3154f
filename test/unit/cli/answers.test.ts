import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { answersIn } from '../../../src/cli/answers.ts'

const directory = mkdtempSync(join(tmpdir(), 'sandglass-answers-'))
afterAll(() => rmSync(directory, { recursive: true }))

const answer = (id: string | null, more: object): string => `${JSON.stringify({ v: 1, type: 'result', id, ...more })}\n`
const refusal = { status: 'invalid-request', error_kind: 'invalid_request' }

test('a rejection is recorded but does not count as an answer; the last one of a line is kept', async () => {
  const path = join(directory, 'answers.jsonl')
  const lines = [
    answer('done', { status: 'step-done', error_kind: null, error: null }),
    answer('failed', { status: 'failed', error_kind: 'error', error: 'ValueError' }),
    answer('bad', { ...refusal, line: 3, error: 'first' }),
    answer('bad', { ...refusal, line: 3, error: 'second' }),
    answer(null, { ...refusal, line: 4, error: 'no JSON' }),
    answer('full', { status: 'failed', error_kind: 'invalid_request', error: 'no space' }),
    answer('fixed', { ...refusal, line: 6, error: 'first' }),
    answer('fixed', { status: 'completed', error_kind: null, error: null }),
  ]
  writeFileSync(path, lines.join(''))
  await using answers = await answersIn(path)
  const ids = ['done', 'failed', 'bad', 'full', 'fixed', 'new']
  expect(ids.filter((id) => answers.hasAnswer(id))).toEqual(['done', 'failed', 'fixed'])
  expect(ids.filter((id) => answers.hasAnswerOrRefusal(id))).toEqual(['done', 'failed', 'bad', 'full', 'fixed'])
  const refusals = [
    { line: 3, id: 'bad', error: 'first' },
    { line: 3, id: 'bad', error: 'second' },
    { line: 4, id: 'bad', error: 'second' },
    { line: 4, id: null, error: 'no JSON' },
    { line: null, id: 'full', error: 'no space' },
    { line: null, id: 'new', error: 'no space' },
  ]
  expect(refusals.map((one) => answers.hasRefusal(one))).toEqual([false, true, false, true, true, false])
})

test('an answer is one line, whatever a script printed', async () => {
  const path = join(directory, 'lines.jsonl')
  const written = { v: 1, type: 'result', id: 'a\u2028', stdout: '\u0085\u2029\n' }
  await using answers = await answersIn(path)
  await answers.write(written)
  const text = readFileSync(path, 'utf8')
  expect(JSON.parse(text)).toEqual(written)
  expect(text).toMatch(/^[^\n\u0085\u2028\u2029]+\n$/)
})
