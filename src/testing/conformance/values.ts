import assert from 'node:assert/strict'
import type { Fixture } from './fixture.ts'
import { python } from './peer.ts'

/** Tests the conversion of values that are sent to the host. */
export function registerValueTests(at: Fixture): void {
  at.test('values that JSON lacks are converted by the documented rules', ['harness'], () =>
    at.withAny(async (peer) => {
      const { result } = await peer.run(python`
        import collections, dataclasses, datetime, decimal, enum, fractions, pathlib, uuid
        @dataclasses.dataclass
        class Point:
            x: int
            y: int = 2
        class Colour(enum.Enum):
            RED = 'red'
        Pair = collections.namedtuple('Pair', 'left right')
        emit_result({
            'datetime': datetime.datetime(2024, 2, 29, 1, 2, 3), 'date': datetime.date(2024, 2, 29),
            'timedelta': datetime.timedelta(seconds=1.5), 'decimal': decimal.Decimal('1.10'),
            'fraction': fractions.Fraction(1, 3), 'bytes': b'\x00\xff', 'set': {3, 1, 2}, 'tuple': (1, (2,)),
            'range': range(3), 'dataclass': [Point(1)], 'enum': Colour.RED, 'namedtuple': Pair(1, [2]),
            'uuid': uuid.UUID(int=5), 'path': pathlib.PurePosixPath('/a'), 1: 'int key', None: 'null key', True: 'bool key',
        })
      `)
      assert.deepEqual(result, {
        datetime: '2024-02-29T01:02:03',
        date: '2024-02-29',
        timedelta: 1.5,
        decimal: '1.10',
        fraction: '1/3',
        bytes: 'AP8=',
        set: [1, 2, 3],
        tuple: [1, [2]],
        range: [0, 1, 2],
        dataclass: [{ x: 1, y: 2 }],
        enum: 'red',
        namedtuple: { left: 1, right: [2] },
        uuid: '00000000-0000-0000-0000-000000000005',
        path: '/a',
        1: 'bool key',
        null: 'null key',
      })
    }),
  )

  for (const [name, expression, message] of [
    ['Infinity', "float('inf')", '$: inf is not a JSON number; send None or str(value)'],
    ['2**53', "{'n': -2**53}", '$.n: an integer beyond 2**53 would lose digits in JSON; send str(value)'],
    ['an object', '[object()]', '$[0]: a value of type object cannot be sent as JSON; convert it first'],
    ['a function', 'len', '$: a value of type builtin_function_or_method cannot be sent as JSON; convert it first'],
  ] as const) {
    at.test(`${name} is an error that names path and type, never JSON that differs in silence`, ['harness'], () =>
      at.withAny(async (peer) => {
        const { events } = await peer.run(`emit_result(${expression})`)
        assert.equal(events.length, 1)
        assert.equal(events[0]?.['type'], 'error')
        assert.ok(
          String(events[0]?.['message']).endsWith(`ConversionError: ${message}`),
          String(events[0]?.['message']),
        )
      }),
    )
  }

  at.test('NaN arrives as null, and the frame tells where it was', ['harness', 'broker'], () =>
    at.withAny(async (peer) => {
      const { events } = await peer.run(
        "nan = float('nan')\nemit_intermediate('p', [nan] * 7)\nemit_result({'a': [1, nan]})",
      )
      assert.deepEqual(
        events.map(({ data, nan_as_null: nulls }) => [data, nulls]),
        [
          [Array.from({ length: 7 }, () => null), { count: 7, paths: [0, 1, 2, 3, 4].map((n) => `$[${n}]`) }],
          [{ a: [1, null] }, { count: 1, paths: ['$.a[1]'] }],
        ],
      )
    }),
  )

  at.test('numbers and text arrive as they were sent', ['harness'], () =>
    at.withAny(async (peer) => {
      const { result } = await peer.run(python`
        emit_result([2**53 - 1, -(2**53 - 1), 0.1, 1e300, 1e-300, 1e16, -0.0, 5e-324, '\ud800', '\u2028 \x00 \r\n "\\ ü😀', ''])
      `)
      assert.deepEqual(result, [
        Number.MAX_SAFE_INTEGER,
        Number.MIN_SAFE_INTEGER,
        0.1,
        1e300,
        1e-300,
        1e16,
        -0,
        5e-324,
        '\ud800',
        '\u2028 \0 \r\n "\\ ü😀',
        '',
      ])
    }),
  )

  at.test('values nest up to 200 levels', ['harness', 'webassembly'], () =>
    at.withAny(async (peer) => {
      const makeNested = (levels: number): string => `v = 1\nfor _ in range(${levels}): v = [v]\nemit_result(v)`
      assert.equal(JSON.stringify((await peer.run(makeNested(200))).result), `${'['.repeat(200)}1${']'.repeat(200)}`)
      assert.match(String((await peer.run(makeNested(201))).events[0]?.['message']), /nested deeper than 200 levels$/)
    }),
  )

  at.test('a value of ten megabytes arrives whole', ['channel'], () =>
    at.withAny(async (peer) => {
      const { result } = await peer.run("emit_result(['ü' * 5_000_000, list(range(100_000))])")
      assert.deepEqual(result, ['ü'.repeat(5_000_000), Array.from({ length: 100_000 }, (_, n) => n)])
    }),
  )

  at.test('keys that are special to JavaScript are plain keys', ['broker'], () =>
    at.withAny(async (peer) => {
      const { result } = await peer.run("emit_result({'__proto__': 1, 'constructor': 2, 'toString': 3})")
      assert.deepEqual(Object.entries(result as object), [
        ['__proto__', 1],
        ['constructor', 2],
        ['toString', 3],
      ])
    }),
  )
}
