import { afterEach, describe, expect, test, vi } from 'vitest'
import { failureOf as toolFailure } from '../../../src/tools/failure.ts'
import { defineTool, ToolCallError } from '../../../src/tools/index.ts'
import { prepareTool } from '../../../src/tools/prepared-tool.ts'
import { bridge, call, failureOf, SECRET } from './sample-bridge.ts'
import { threadMsAtRest } from '../../support/measure-best.ts'

describe('every value that a tool can throw has its own error', () => {
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
    ['a circular object', circular, 'tool_failed', 'work threw an object that is not an Error'],
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

describe('errors in scripts contain no secrets', () => {
  afterEach(() => vi.unstubAllEnvs())

  test('even if the error quotes a request that contains them', async () => {
    vi.stubEnv('OWN_KEY', 'k3y"of\\the/tool+1')
    const own = process.env['OWN_KEY'] ?? ''
    const quoted = [JSON.stringify({ key: own }), new URLSearchParams({ key: own }).toString(), btoa(`me:${own}`)]
    const execute = (): never => {
      throw new Error(quoted.join(' '))
    }
    expect(await failureOf({ execute, secrets: ['OWN_KEY'] })).toEqual({
      code: 'tool_failed',
      message: '{"key":"[redacted:OWN_KEY]"} key=[redacted:OWN_KEY] bWU6[redacted:OWN_KEY]E=',
    })
  })

  test('even if a variable has changed since the previous failure', async () => {
    const { port, waitForAnswers } = bridge({
      execute: () => {
        throw new Error('not with old-key-1, not with new-key-2')
      },
      secrets: ['OWN_KEY'],
    })
    for (const [id, key] of [
      ['1', 'old-key-1'],
      ['2', 'new-key-2'],
    ] as const) {
      vi.stubEnv('OWN_KEY', key)
      await port.take(call(id))
      await waitForAnswers(Number(id))
    }
    expect(await waitForAnswers(2)).toEqual([
      ['1', { code: 'tool_failed', message: 'not with [redacted:OWN_KEY], not with new-key-2' }],
      ['2', { code: 'tool_failed', message: 'not with old-key-1, not with [redacted:OWN_KEY]' }],
    ])
  })

  test('and a long one costs time only at the first failure', () => {
    vi.stubEnv('OWN_KEY', Array.from({ length: 800 }, (_, index) => index.toString(36)).join('+'))
    const tool = prepareTool(
      defineTool({
        name: 'work',
        description: '',
        input: { type: 'object' },
        secrets: ['OWN_KEY'],
        execute: () => null,
      }),
    )
    const timeOf = (failures: number): number => {
      const before = threadMsAtRest()
      for (let count = 0; count < failures; count += 1) toolFailure(tool, 'no route', (text) => text)
      return threadMsAtRest() - before
    }
    const first = timeOf(1)
    // The collection of garbage can fall into one of them.
    expect(Math.min(timeOf(20), timeOf(20), timeOf(20))).toBeLessThan(first)
  })

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
    const { port, waitForAnswers } = bridge({})
    await port.take(call('1', {}, SECRET))
    expect(await waitForAnswers(1)).toEqual([
      ['1', { code: 'unknown_tool', message: 'no tool "[redacted:RUN]" in this run.' }],
    ])
  })

  test('in an exception of a getter of the answer', async () => {
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
