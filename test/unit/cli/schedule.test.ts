import { expect, test } from 'vitest'
import { type InputLine, inputLines } from '../../../src/cli/request-lines.ts'
import { type Planned, Schedule } from '../../../src/cli/schedule.ts'

function scheduleOf(requests: readonly Planned[]): { schedule: Schedule<Planned>; stuck: string[] } {
  const schedule = new Schedule<Planned>()
  const stuck = requests.flatMap((request) => {
    schedule.addId(request.id)
    return schedule.add(request).map((one) => `${one.request.id}: ${one.problem}`)
  })
  return { schedule, stuck }
}

test('a request starts when all requests before it in `after` are answered', () => {
  const { schedule } = scheduleOf([
    { id: 'c', after: ['a', 'b'] },
    { id: 'a', after: [] },
    { id: 'b', after: ['a'] },
  ])
  expect([schedule.take()?.id, schedule.take()]).toEqual(['a', undefined])
  schedule.markAnswered('a')
  expect([schedule.take()?.id, schedule.take()]).toEqual(['b', undefined])
  schedule.markAnswered('b')
  expect([schedule.take()?.id, schedule.ready, schedule.waiting]).toEqual(['c', 0, 0])
})

test('rejects requests that wait for each other as soon as the cycle closes; requests that wait for them go on', () => {
  const { schedule, stuck } = scheduleOf([
    { id: 'outside', after: ['a'] },
    { id: 'a', after: ['c'] },
    { id: 'b', after: ['a'] },
    { id: 'c', after: ['b'] },
    { id: 'self', after: ['self'] },
  ])
  expect(stuck).toEqual([
    'c: it waits for itself: "c" → "b" → "a" → "c"',
    'b: it waits for itself: "c" → "b" → "a" → "c"',
    'a: it waits for itself: "c" → "b" → "a" → "c"',
    'self: it waits for itself: "self" → "self"',
  ])
  schedule.markAnswered('a')
  expect(schedule.take()?.id).toBe('outside')
})

test('rejects at the end of the input requests that wait for an unknown id', () => {
  const { schedule } = scheduleOf([
    { id: 'a', after: ['never'] },
    { id: 'b', after: ['a'] },
  ])
  expect(schedule.end()).toEqual([
    { request: { id: 'a', after: ['never'] }, problem: 'it waits for the id "never", which no line has' },
  ])
  schedule.markAnswered('a')
  expect(schedule.take()?.id).toBe('b')
})

test('does not wait for ids that an earlier batch answered', () => {
  const { schedule } = scheduleOf([
    { id: 'a', after: ['earlier'] },
    { id: 'b', after: ['earlier', 'never'] },
    { id: 'c', after: ['a'] },
  ])
  const stuck = schedule.end((id) => id === 'earlier' || id === 'a')
  expect(stuck.map(({ request }) => request.id)).toEqual(['b'])
  expect([schedule.take()?.id, schedule.take()]).toEqual(['a', undefined])
})

test('finds lines wherever chunks end; reports and skips lines that are too long or not UTF-8', async () => {
  const bytes = Buffer.concat([
    Buffer.from('{"a":"ä"}\r\n\n  \n0123456789012345\nok\n'),
    Buffer.from([0xff, 0x0a]),
    Buffer.from('last'),
  ])
  const expected: InputLine[] = [
    { number: 1, text: '{"a":"ä"}\r' },
    { number: 4, problem: 'too-long' },
    { number: 5, text: 'ok' },
    { number: 6, problem: 'not-utf8' },
    { number: 7, text: 'last' },
  ]
  for (const size of [1, 3, 7, bytes.length]) {
    const lines = await Array.fromAsync(inputLines(chunksOf(bytes, size), 12))
    expect(lines).toEqual(expected)
  }
})

async function* chunksOf(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size)
}
