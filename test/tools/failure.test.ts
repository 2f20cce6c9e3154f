import { afterEach, describe, expect, test, vi } from 'vitest'
import { ToolCallError } from '../../src/tools/index.ts'
import { bridge, call, failureOf, SECRET } from './sample-bridge.ts'

describe('whatever a tool throws is told apart', () => {
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  const revoked = Proxy.revocable({}, {})
  revoked.revoke()
  const hostile = new Error('x')
  Object.defineProperty(hostile, 'message', {
    get() {
      throw new Error('no')
    },
  })
  const nameless = new Error('')
  Object.defineProperty(nameless, 'name', { value: { not: 'text' } })
  test.each<[string, unknown, string, string]>([
    ['undefined', undefined, 'tool_failed', 'work threw undefined'],
    ['null', null, 'tool_failed', 'work threw null'],
    ['a string', 'no stock', 'tool_failed', 'no stock'],
    ['a number', 7, 'tool_failed', 'work threw a number'],
    ['a symbol', Symbol('s'), 'tool_failed', 'work threw a symbol'],
    ['a circular object', circular, 'tool_failed', 'work threw an object that is no Error'],
    ['a revoked Proxy', revoked.proxy, 'tool_failed', 'work threw something that cannot be read'],
    ['an Error whose message throws', hostile, 'tool_failed', 'work threw something that cannot be read'],
    ['an Error', new Error('no route'), 'tool_failed', 'no route'],
    ['an Error without a message', new RangeError(), 'tool_failed', 'RangeError'],
    ['an Error whose name is an object', nameless, 'tool_failed', '[object Object]'],
    ['an Error with a long message', new Error('y'.repeat(5000)), 'tool_failed', `${'y'.repeat(4096)}…`],
    ['a ToolCallError', new ToolCallError('out_of_stock', 'none left'), 'out_of_stock', 'none left'],
    ['a ToolCallError with a long code', new ToolCallError('c'.repeat(99), 'm'), 'c'.repeat(64), 'm'],
  ])('%s', async (_what, thrown, code, message) => {
    const reject = async (): Promise<never> => {
      await Promise.resolve()
      throw thrown
    }
    expect(await failureOf({ execute: reject })).toEqual({ code, message })
    const throwing = (): never => {
      throw thrown
    }
    expect(await failureOf({ execute: throwing })).toEqual({ code, message })
  })
})

describe('secrets stay out of what a script is told', () => {
  afterEach(() => vi.unstubAllEnvs())

  test('those of the run and those of the tool, in message and code', async () => {
    vi.stubEnv('SHORT_KEY', 'key-abc')
    vi.stubEnv('LONG_KEY', 'key-abcdef$&')
    const execute = (): never => {
      throw new ToolCallError(`bad-${SECRET}`, `401 for key-abcdef$& and key-abc with ${SECRET}`)
    }
    expect(await failureOf({ execute, secrets: ['SHORT_KEY', 'LONG_KEY', 'NOT_SET'] })).toEqual({
      code: 'bad-[redacted:RUN]',
      message: '401 for [redacted:LONG_KEY] and [redacted:SHORT_KEY] with [redacted:RUN]',
    })
  })

  test('in the name of a tool that does not exist', async () => {
    const { port, answered } = bridge({})
    await port.take(call('1', {}, SECRET))
    expect(await answered(1)).toEqual([
      ['1', { code: 'unknown_tool', message: 'no tool "[redacted:RUN]" in this run.' }],
    ])
  })

  test('in what a getter of the answer threw', async () => {
    const answer = {
      get value(): string {
        throw new Error(`no ${SECRET}`)
      },
    }
    expect(await failureOf({ execute: () => answer })).toEqual({
      code: 'invalid_result',
      message: 'work: the answer cannot be read: no [redacted:RUN]',
    })
  })
})
