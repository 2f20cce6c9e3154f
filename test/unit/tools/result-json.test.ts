import { describe, expect, test } from 'vitest'
import { MAX_RESULT_BYTES, resultJson } from '../../../src/tools/result-json.ts'
import { ToolCallError } from '../../../src/tools/index.ts'

function encode(value: unknown): string {
  try {
    return resultJson('work', value)
  } catch (error) {
    if (!(error instanceof ToolCallError)) throw error
    return `${error.code}: ${error.message}`
  }
}

const circular: Record<string, unknown> = {}
circular['self'] = { again: circular }
const revoked = Proxy.revocable({}, {})
revoked.revoke()
const shared = { n: 1 }
const deep = (levels: number): unknown => {
  let value: unknown = 1
  for (let n = 0; n < levels; n += 1) value = [value]
  return value
}
/** A thousand references to each level: a billion values from few objects. */
const wide = (levels: number): unknown => {
  let value: unknown = 'x'
  for (let n = 0; n < levels; n += 1) value = Array.from({ length: 1000 }, () => value)
  return value
}

const holes = (length: number): unknown[] => {
  const list: unknown[] = []
  list.length = length
  return list
}

describe('the JSON of an answer', () => {
  test.each<[string, unknown, string]>([
    ['undefined', undefined, 'null'],
    ['null', null, 'null'],
    ['a field that is undefined', { a: undefined, b: [undefined] }, '{"b":[null]}'],
    ['a small BigInt', 12n, '12'],
    ['a Date', new Date(0), '"1970-01-01T00:00:00.000Z"'],
    ['a Map', new Map<unknown, unknown>([['a', new Map([[1, 2]])]]), '{"a":{"1":2}}'],
    ['a Set', new Set([1, 'b']), '[1,"b"]'],
    ['a Buffer', Buffer.from('hello'), '"aGVsbG8="'],
    ['a part of an ArrayBuffer', new Uint8Array([0, 1, 2, 3]).subarray(1, 3), '"AQI="'],
    ['an ArrayBuffer', new Uint8Array([1]).buffer, '"AQ=="'],
    ['toJSON', { toJSON: () => ({ shown: true }) }, '{"shown":true}'],
    ['a URL', new URL('https://example.org/'), '"https://example.org/"'],
    [
      'an object of a class',
      new (class Point {
        x = 1
      })(),
      '{"x":1}',
    ],
    ['a boxed number and a boxed text', [new Number(5), new String('abc')], '[5,"abc"]'],
    ['the same object twice', [shared, shared], '[{"n":1},{"n":1}]'],
    ['a key __proto__', JSON.parse('{"__proto__": 1}'), '{"__proto__":1}'],
    ['half of a surrogate pair', '\uD800', String.raw`"\ud800"`],
    ['a number beyond integers', 1e300, '1e+300'],
    ['a hundred levels', deep(100), `${'['.repeat(100)}1${']'.repeat(100)}`],
  ])('%s', (_what, value, json) => {
    expect(encode(value)).toBe(json)
  })

  test('a value of the maximum size', () => {
    const most = 'x'.repeat(MAX_RESULT_BYTES - 2 - 16)
    expect(encode(most).length).toBe(most.length + 2)
  })
})

describe('an answer that cannot be sent is rejected with the place of the value', () => {
  test.each<[string, unknown, string]>([
    ['a large BigInt', { n: [2n ** 64n] }, '$.n[0]: an integer beyond 2^53 cannot be sent; return it as text'],
    ['a large number', 2 ** 60, '$: an integer beyond 2^53 has already lost digits; return it as text'],
    ['NaN', { rate: Number.NaN }, '$.rate: NaN is not a JSON number; return null instead'],
    ['Infinity', [1, -Infinity], '$[1]: -Infinity is not a JSON number; return null instead'],
    ['a function', { on: () => 1 }, '$.on: a function cannot be sent as JSON'],
    ['a symbol', Symbol('s'), '$: a symbol cannot be sent as JSON'],
    ['a circular object', circular, '$.self.again: the answer contains itself'],
    ['an invalid Date', [new Date(Number.NaN)], '$[0]: the date is not valid'],
    ['an Error', new Error('x'), '$: an Error is not an answer; throw it, so that the script gets a ToolError'],
    ['a Map with object keys', new Map([[{}, 1]]), '$: a key of a Map must be text'],
    [
      'a Promise that nobody awaited',
      { rows: Promise.resolve([]) },
      '$.rows: a Promise cannot be sent as JSON; await it',
    ],
    ['a RegExp', [/x/], '$[0]: a RegExp cannot be sent as JSON; answer with its source'],
    ['a generator', (function* () {})(), '$: a generator cannot be sent as JSON; answer with a list'],
    ['a WeakMap', new WeakMap(), '$: a WeakMap cannot be sent as JSON'],
    ['too many levels', deep(300), `$${'[0]'.repeat(199)}: nested deeper than 199 levels`],
    [
      'a getter that throws',
      {
        get x(): never {
          throw new Error('gone')
        },
      },
      'the answer cannot be read: gone',
    ],
    [
      'a getter that throws undefined',
      {
        get x(): never {
          // oxlint-disable-next-line typescript/only-throw-error -- answers of others may
          throw undefined
        },
      },
      'the answer cannot be read: it threw undefined',
    ],
    [
      'a getter that throws an unreadable value',
      {
        get x(): never {
          // oxlint-disable-next-line typescript/only-throw-error -- answers of others may
          throw revoked.proxy
        },
      },
      'the answer cannot be read: it threw something that cannot be read',
    ],
    [
      'a revoked Proxy',
      revoked.proxy,
      "the answer cannot be read: Cannot perform 'getPrototypeOf' on a proxy that has been revoked",
    ],
    [
      'a toJSON that throws',
      {
        toJSON() {
          throw new Error('later')
        },
      },
      'the answer cannot be read: later',
    ],
  ])('%s', (_what, value, message) => {
    expect(encode(value)).toBe(`invalid_result: work: ${message}`)
  })

  test.each<[string, () => unknown]>([
    ['a text of 100 MB', () => 'x'.repeat(100_000_000)],
    ['bytes of 100 MB', () => Buffer.alloc(100_000_000)],
    ['a list of a hundred million holes', () => holes(100_000_000)],
    ['a text that is too large in UTF-8 alone', () => 'é'.repeat(9 * 1024 * 1024)],
    ['few objects that unfold to a billion', () => wide(3)],
  ])('%s is too large', (_what, make) => {
    expect(encode(make())).toBe(
      `result_too_large: work: the answer has more than ${MAX_RESULT_BYTES} bytes, or a million values; return less, or page by page`,
    )
  })
})
