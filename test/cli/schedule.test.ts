import { expect, test } from 'vitest'
import { type InputLine, inputLines } from '../../src/cli/request-lines.ts'
import { type Planned, Schedule } from '../../src/cli/schedule.ts'

function scheduleOf(requests: readonly Planned[]): { schedule: Schedule<Planned>; stuck: string[] } {
  const schedule = new Schedule<Planned>()
  const stuck = requests.flatMap((request) => {
    schedule.meet(request.id)
    return schedule.add(request).map((one) => `${one.request.id}: ${one.problem}`)
  })
  return { schedule, stuck }
}

test('a request starts when everything it comes after is answered', () => {
  const { schedule } = scheduleOf([
    { id: 'c', after: ['a', 'b'] },
    { id: 'a', after: [] },
    { id: 'b', after: ['a'] },
  ])
  expect([schedule.take()?.id, schedule.take()]).toEqual(['a', undefined])
  schedule.answered('a')
  expect([schedule.take()?.id, schedule.take()]).toEqual(['b', undefined])
  schedule.answered('b')
  expect([schedule.take()?.id, schedule.ready, schedule.waiting]).toEqual(['c', 0, 0])
})

test('requests that wait for each other are given back as soon as the circle closes, and who waits for them goes on', () => {
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
  schedule.answered('a')
  expect(schedule.take()?.id).toBe('outside')
})

test('at the end of the input, who waits for an id that never came is given back', () => {
  const { schedule } = scheduleOf([
    { id: 'a', after: ['never'] },
    { id: 'b', after: ['a'] },
  ])
  expect(schedule.end()).toEqual([
    { request: { id: 'a', after: ['never'] }, problem: 'it waits for the id "never", which no line has' },
  ])
  schedule.answered('a')
  expect(schedule.take()?.id).toBe('b')
})

test('at the end of the input, what an earlier batch answered is not waited for', () => {
  const { schedule } = scheduleOf([
    { id: 'a', after: ['earlier'] },
    { id: 'b', after: ['earlier', 'never'] },
    { id: 'c', after: ['a'] },
  ])
  const stuck = schedule.end((id) => id === 'earlier' || id === 'a')
  expect(stuck.map(({ request }) => request.id)).toEqual(['b'])
  expect([schedule.take()?.id, schedule.take()]).toEqual(['a', undefined])
})

test('lines are cut wherever the chunks end; too long ones and such that are no UTF-8 are told and skipped', async () => {
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
