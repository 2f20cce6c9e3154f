import { expect, test } from 'vitest'
import { done, frame, play } from './wire.ts'

const nan = (...paths: string[]): object => (paths.length === 0 ? {} : { nan_as_null: { count: paths.length, paths } })
const emitted = (label: string, ...paths: string[]): object =>
  frame('intermediate', { label, data: null, ...nan(...paths) })
const returned = (...paths: string[]): object => frame('final_result', { data: null, ...nan(...paths) })

async function warningsOf(
  frames: readonly object[],
  secrets: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  const { result } = await play([...frames, done()], { request: { secrets } })
  return result.warnings.map(({ code, message }) => `${code}: ${message}`)
}

// HA-13
test('NaN that became null is one warning with count and places', async () => {
  expect(await warningsOf([emitted('half', '$[0]', '$[1]'), returned('$.a[1]')])).toEqual([
    'nan_as_null: 3 NaN values were converted to null: $[0] of the intermediate "half", $[1] of the intermediate "half", $.a[1] of the result',
  ])
})

test('only the first places are named, whatever a script claims', async () => {
  const many = frame('intermediate', {
    label: 'p',
    data: 1,
    nan_as_null: { count: 2 ** 50, paths: ['$'.repeat(9999)] },
  })
  const [warning = ''] = await warningsOf([many, many, emitted('q', '$.1', '$.2', '$.3', '$.4')])
  expect(warning).toMatch(
    /^nan_as_null: 2251799813685252 NaN .*, \$\.3 of the intermediate "q", 2251799813685247 more$/,
  )
  expect(warning.length).toBeLessThan(1300)
})

test('a result without a count has no warning', async () => {
  expect(await warningsOf([returned(), returned('$.late')])).toEqual([
    'second_result: emit_result was called again; the first result stands',
  ])
})

test('a path holds no secret', async () => {
  expect(await warningsOf([returned('$.hunter22.x')], { KEY: 'hunter22' })).toEqual([
    'nan_as_null: 1 NaN value was converted to null: $.[redacted:KEY].x of the result',
  ])
})

test.each([{ count: 0, paths: [] }, { count: 1 }, { count: 1, paths: ['$', '$', '$', '$', '$', '$'] }, 'x'])(
  'a frame with %j in its place is no frame',
  async (wrong) => {
    const { result } = await play([frame('final_result', { data: 1, nan_as_null: wrong }), done()])
    expect([result.hasResult, result.ignoredFrames, result.warnings]).toEqual([false, 1, []])
  },
)
