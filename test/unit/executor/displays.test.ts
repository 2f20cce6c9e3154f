import { expect, test } from 'vitest'
import type { CellGroup, CellTurn, RunEvent } from '../../../src/executor/index.ts'
import { done, frame, ID, play } from './wire.ts'

const display = (fields: object = {}): object =>
  frame('display', { kind: 'display', data: { 'text/plain': 'x' }, left_out: [], after: { stdout: 0 }, ...fields })
const base64 = (text: string): string => Buffer.from(text).toString('base64')

test('displays are events and parts of the result, in order', async () => {
  const events: RunEvent[] = []
  const first = {
    data: { 'text/plain': 'a', 'image/png': base64('png') },
    left_out: ['text/html'],
    after: { stdout: 3 },
  }
  const { result } = await play([display(first), display({ kind: 'result' }), done()], {
    onEvent: (event) => void events.push(event),
  })
  const { left_out: leftOut, ...rest } = first
  expect(result.displays).toEqual([
    { kind: 'display', leftOut, ...rest },
    { kind: 'result', data: { 'text/plain': 'x' }, leftOut: [], after: { stdout: 0 } },
  ])
  expect(events.filter(({ type }) => type === 'display')).toEqual(
    result.displays.map((shown, place) => ({ type: 'display', executionId: ID, place, ...shown })),
  )
  expect(result.outputBytes).toBe(0)
})

test('secrets are redacted in text, and a binary part that holds one is left out', async () => {
  const data = {
    'text/plain': 'key hunter22',
    'application/json': '{"key":"hunter22"}',
    'image/svg+xml': '<svg>hunter22</svg>',
    'image/png': base64('png hunter22'),
    'image/jpeg': base64('jpeg'),
  }
  const { result } = await play([display({ data }), done()], { request: { secrets: { KEY: 'hunter22' } } })
  expect(result.displays).toEqual([
    {
      kind: 'display',
      data: {
        'text/plain': 'key [redacted:KEY]',
        'application/json': '{"key":"[redacted:KEY]"}',
        'image/svg+xml': '<svg>[redacted:KEY]</svg>',
        'image/jpeg': base64('jpeg'),
      },
      leftOut: ['image/png'],
      after: { stdout: 0 },
    },
  ])
  expect(result.warnings).toMatchObject([
    {
      code: 'secret_in_display',
      message: 'image/png of display 1 held the value of a secret and was left out',
    },
  ])
})

test('a part whose type names a secret is left out, and the secret redacted', async () => {
  const data = { 'text/hunter22': 'a', 'application/x-hunter22': base64('a'), 'text/plain': 'b' }
  const { result } = await play([display({ data, left_out: ['image/hunter22'] }), done()], {
    request: { secrets: { KEY: 'hunter22' } },
  })
  const [text, binary, image] = ['text/', 'application/x-', 'image/'].map((head) => `${head}[redacted:KEY]`)
  expect(result.displays).toMatchObject([{ data: { 'text/plain': 'b' }, leftOut: [image, text, binary] }])
  expect(JSON.stringify(result)).not.toContain('hunter22')
})

/** With its marker, a text of a few secrets grows fifty times. */
const LONG_NAME = 'THE_NAME_OF_A_PIN'.padEnd(250, '_')

test('a text that grows beyond the limit when its secrets are redacted is left out', async () => {
  const data = { 'text/html': 'q9x4 '.repeat(20_000), 'text/plain': 'q9x4' }
  const { result } = await play([display({ data }), done()], { request: { secrets: { [LONG_NAME]: 'q9x4' } } })
  expect(result.displays).toMatchObject([{ leftOut: ['text/html'] }])
  expect(result.displays[0]?.data).toEqual({ 'text/plain': `[redacted:${LONG_NAME}]` })
})

test('texts that grow beyond the limit of all displays when their secrets are redacted are left out', async () => {
  const one = display({ data: { 'text/html': 'q9x4 '.repeat(11_000), 'text/plain': 'p' } })
  const { result } = await play([one, one, one, one, one, one, done()], {
    request: { secrets: { [LONG_NAME]: 'q9x4' } },
  })
  expect(result.displays.map(({ leftOut }) => leftOut)).toEqual([[], [], [], [], [], ['text/html']])
})

test.each(['no base64', 'YQ', 'YQ==YQ==', 'a\n=='])('%j is no binary content', async (content) => {
  const { result } = await play([display({ data: { 'image/png': content, 'text/plain': 'p' } }), done()])
  expect(result.displays).toMatchObject([{ data: { 'text/plain': 'p' }, leftOut: ['image/png'] }])
})

test.each([
  { kind: 'other' },
  { data: {} },
  { data: { 'text/plain': 5 } },
  { data: { plain: 'x' } },
  { data: { __proto__: null, 'text/plain\n': 'x' } },
  { data: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`text/x${n}`, 'x'])) },
  { left_out: Array.from({ length: 17 }, () => 'text/x') },
  { after: { stdout: -1 } },
  { after: undefined },
])('%j is no display', async (fields) => {
  const { result } = await play([display(fields), done()])
  expect(result).toMatchObject({ displays: [], ignoredFrames: 1 })
})

test('a peer that sends more than the caps is no harness', async () => {
  const many = await play([...Array.from({ length: 101 }, () => display()), done()])
  expect(many.result).toMatchObject({
    status: 'sandbox-lost',
    error: expect.stringContaining('more than 100 displays') as string,
  })
  const large = display({ data: { 'text/html': 'x'.repeat(4 * 1024 * 1024) } })
  const much = await play([large, large, large, large, done()])
  expect(much.result.error).toContain('displays of more than 16777216 bytes')
  expect(much.result.displays).toHaveLength(3)
})

test('displays beyond the limit of a session are left out, which a warning of each cell says', async () => {
  const group: CellGroup = { displaysBytes: 1024 * 1024 * 1024 - 400 }
  const cell: CellTurn = {
    session: 's',
    number: 1,
    onError: 'keep',
    hidden: [],
    group,
    onSent: () => undefined,
    onEnd: () => undefined,
  }
  const shown = display()
  const large = display({ data: { 'text/plain': 'y'.repeat(400) } })
  const events: RunEvent[] = []
  const { result } = await play([shown, large, large, shown, done()], {
    request: { cell },
    onEvent: (event) => void events.push(event),
  })
  expect(result.displays.map(({ data }) => data)).toEqual([{ 'text/plain': 'x' }, { 'text/plain': 'x' }])
  expect(events.flatMap((event) => (event.type === 'display' ? [event.place] : []))).toEqual([0, 1])
  expect(result.warnings.filter(({ code }) => code === 'displays_left_out')).toMatchObject([
    {
      message:
        'displays were left out: a session and its branches show at most 1024 MiB together; open another session',
    },
  ])
  // A branch has the same group, so it may show no more.
  const { result: next } = await play([large, done()], { request: { cell } })
  expect(next.displays).toEqual([])
  expect(next.warnings.map(({ code }) => code)).toContain('displays_left_out')
})
