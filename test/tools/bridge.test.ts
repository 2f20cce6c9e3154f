import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { ToolCallFrame, ToolFailure } from '../../src/protocol/index.ts'
import {
  bridgedTools,
  defineTool,
  prepareTools,
  type ToolContext,
  ToolCallError,
  type ToolLimits,
  type ToolOptions,
} from '../../src/tools/index.ts'
import { eventually } from '../support/eventually.ts'

const SECRET = 'run-secret-93'

/** A run that keeps what it is told, and the bridge of a tool `work`. */
function bridge(options: Partial<ToolOptions>, limits: ToolLimits = {}) {
  const work = defineTool({
    name: 'work',
    description: '',
    input: { type: 'object' },
    execute: () => null,
    ...options,
  })
  const answers: [id: string, answer: unknown][] = []
  const told: unknown[] = []
  const port = bridgedTools(prepareTools([work]), limits).open({
    executionId: 'run-1',
    answer: async (id, answer) => {
      await Promise.resolve()
      answers.push([id, 'resultJson' in answer ? (JSON.parse(answer.resultJson) as unknown) : answer.error])
    },
    began: ({ id }, effect) => void told.push(`began ${id} ${effect}`),
    ended: (id, { error }) => void told.push(`ended ${id} ${error?.code ?? 'ok'}`),
    redact: (text) => text.replaceAll(SECRET, '[redacted:RUN]'),
  })
  const answered = async (count: number): Promise<typeof answers> => {
    expect(await eventually(() => (answers.length >= count ? undefined : `${answers.length} answers`), 5000)).toBe(
      undefined,
    )
    return answers
  }
  return { port, answers, told, answered }
}

function call(id: string, args: Record<string, unknown> = {}, name = 'work'): ToolCallFrame {
  return { type: 'tool_call', execution_id: 'run-1', id, name, args }
}

/** The error that one call of a tool comes to. */
async function failureOf(options: Partial<ToolOptions>): Promise<ToolFailure> {
  const { port, answered } = bridge(options)
  await port.take(call('1'))
  return (await answered(1))[0]?.[1] as ToolFailure
}

describe('what may be called is known to the host alone', () => {
  test.each(['wrok', '__proto__', 'constructor', 'toString', 'describe_tool', 'x'.repeat(256)])(
    'a call of %j is refused and executes nothing',
    async (name) => {
      const execute = vi.fn<() => null>(() => null)
      const { port, answered, told } = bridge({ execute })
      await port.take(call('1', {}, name))
      const shown = JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name)
      const hint = name === 'wrok' ? ' Did you mean "work"?' : ''
      expect(await answered(1)).toEqual([
        ['1', { code: 'unknown_tool', message: `no tool ${shown} in this run.${hint}` }],
      ])
      expect(told).toEqual(['began 1 null', 'ended 1 unknown_tool'])
      expect(execute).not.toHaveBeenCalled()
    },
  )

  test('an id is executed and answered once, also when it comes again after its answer and under another name', async () => {
    const execute = vi.fn<(input: unknown) => unknown>((input) => input)
    const { port, answered, answers, told } = bridge({ execute })
    await port.take(call('a', { n: 1 }))
    await port.take(call('a', { n: 2 }))
    await answered(1)
    await port.take(call('a', { n: 3 }))
    await port.take(call('a', {}, 'other'))
    await port.take(call('b', { n: 4 }))
    await answered(2)
    expect(answers).toEqual([
      ['a', { n: 1 }],
      ['b', { n: 4 }],
    ])
    expect(execute).toHaveBeenCalledTimes(2)
    expect(told).toEqual(['began a write', 'ended a ok', 'began b write', 'ended b ok'])
  })

  test('the tool is told the run, the call and its input', async () => {
    const execute = vi.fn<(input: unknown, context: ToolContext) => null>(() => null)
    const { port, answered } = bridge({ execute })
    await port.take(call('c-1', { x: 1 }))
    await answered(1)
    const signal: unknown = expect.any(AbortSignal)
    expect(execute).toHaveBeenCalledWith({ x: 1 }, { callId: 'c-1', executionId: 'run-1', signal })
  })

  test('a key __proto__ in the arguments reaches no tool and no prototype', async () => {
    const execute = vi.fn<() => null>(() => null)
    const { port, answered } = bridge({ execute })
    await port.take(call('1', JSON.parse('{"__proto__": {"polluted": 1}}') as Record<string, unknown>))
    expect(await answered(1)).toEqual([
      ['1', { code: 'invalid_arguments', message: 'work: the key "__proto__" is not allowed' }],
    ])
    expect(execute).not.toHaveBeenCalled()
    expect({}).not.toHaveProperty('polluted')
  })
})

describe('limits', () => {
  test("maxCalls of a tool: what comes beyond is refused, and other tools' calls go on", async () => {
    const execute = vi.fn<() => number>(() => 1)
    const { port, answered } = bridge({ execute, maxCalls: 2 })
    for (const id of ['1', '2', '3']) await port.take(call(id))
    const limit = { code: 'call_limit', message: 'work: this run may call it 2 times' }
    expect(new Map(await answered(3))).toEqual(
      new Map<string, unknown>([
        ['1', 1],
        ['2', 1],
        ['3', limit],
      ]),
    )
    expect(execute).toHaveBeenCalledTimes(2)
  })

  test('maxCalls of the run counts the calls of all tools', async () => {
    const { port, answered } = bridge({ execute: () => 1 }, { maxCalls: 1 })
    await port.take(call('1'))
    await port.take(call('2'))
    expect(new Map(await answered(2)).get('2')).toEqual({
      code: 'call_limit',
      message: 'this run may call tools 1 times',
    })
  })

  test.each([
    ['of the tool', { concurrency: 2 }, {}],
    ['of the run', {}, { concurrency: 2 }],
  ])('concurrency %s: so many at a time, the others in the order in which they came', async (_of, own, limits) => {
    const begun: unknown[] = []
    let [atOnce, most] = [0, 0]
    const gates = new Map<unknown, () => void>()
    const execute = async ({ n }: { n: number }): Promise<number> => {
      begun.push(n)
      most = Math.max(most, (atOnce += 1))
      await new Promise<void>((open) => {
        gates.set(n, open)
      })
      atOnce -= 1
      return n
    }
    const { port, answered } = bridge({ execute: execute as ToolOptions['execute'], ...own }, limits)
    for (let n = 0; n < 6; n += 1) await port.take(call(String(n), { n }))
    for (let n = 0; n < 6; n += 1) {
      expect(await eventually(() => (gates.has(n) ? undefined : `${n} did not begin`), 2000)).toBeUndefined()
      gates.get(n)?.()
    }
    expect((await answered(6)).map(([id]) => id)).toEqual(['0', '1', '2', '3', '4', '5'])
    expect([begun, most]).toEqual([[0, 1, 2, 3, 4, 5], 2])
  })

  test('a tool that waits for its own turn holds no turn of the run', async () => {
    const stuck = Promise.withResolvers<null>()
    const slow = defineTool({
      name: 'slow',
      description: '',
      input: { type: 'object' },
      concurrency: 1,
      execute: () => stuck.promise,
    })
    const quick = defineTool({ name: 'quick', description: '', input: { type: 'object' }, execute: () => 'quick' })
    const done: string[] = []
    const port = bridgedTools(prepareTools([slow, quick]), { concurrency: 2 }).open({
      executionId: 'run-1',
      answer: (id) => Promise.resolve(void done.push(id)),
      began: () => undefined,
      ended: () => undefined,
      redact: (text) => text,
    })
    for (const id of ['1', '2', '3']) await port.take(call(id, {}, 'slow'))
    await port.take(call('4', {}, 'quick'))
    expect(await eventually(() => (done.length === 1 ? undefined : 'nothing'), 2000)).toBeUndefined()
    expect(done).toEqual(['4'])
    stuck.resolve(null)
    expect(await eventually(() => (done.length === 4 ? undefined : `${done.join()}`), 2000)).toBeUndefined()
  })

  test('timeoutMs: the script is told, the signal fires, the next call has its turn, and a late answer is dropped', async () => {
    const late = Promise.withResolvers<string>()
    const signals: AbortSignal[] = []
    const execute = ({ n }: { n: number }, { signal }: ToolContext): unknown => {
      signals.push(signal)
      return n === 1 ? late.promise : 'second'
    }
    const { port, answered, answers } = bridge({
      execute: execute as ToolOptions['execute'],
      timeoutMs: 30,
      concurrency: 1,
    })
    await port.take(call('1', { n: 1 }))
    await port.take(call('2', { n: 2 }))
    const want = [
      ['1', { code: 'timed_out', message: 'work: no answer within 30 ms' }],
      ['2', 'second'],
    ]
    expect(await answered(2)).toEqual(want)
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
    late.resolve('late')
    await sleep(0)
    expect(answers).toEqual(want)
  })

  test.each([{ maxCalls: 0 }, { concurrency: 1.5 }, { maxCalls: Number.NaN }])('%j is refused', (limits) => {
    expect(() => bridge({}, limits)).toThrow(TypeError)
  })

  test('a thousand calls that wait: the next is taken when one of them has ended', async () => {
    const gates: (() => void)[] = []
    const execute = (): Promise<void> =>
      new Promise((open) => {
        gates.push(open)
      })
    const { port, answered } = bridge({ execute })
    let taken = 0
    const taking = (async () => {
      for (let n = 0; n < 1100; n += 1) {
        await port.take(call(String(n)))
        taken += 1
      }
    })()
    expect(await eventually(() => (taken === 999 ? undefined : `${taken} taken`), 5000)).toBeUndefined()
    await sleep(0)
    expect([taken, gates.length]).toEqual([999, 32])
    gates[0]?.()
    expect(await eventually(() => (taken === 1000 ? undefined : `${taken} taken`), 5000)).toBeUndefined()
    const opening = setInterval(() => gates.splice(0).forEach((open) => open()), 1)
    await taking
    await answered(1100)
    clearInterval(opening)
  })

  test('calls that wait with 64 MiB of arguments are enough, however few they are', async () => {
    const { port } = bridge({ execute: () => Promise.withResolvers().promise })
    const text = 'x'.repeat(16 * 1024 * 1024)
    let taken = 0
    const taking = (async () => {
      for (let n = 0; n < 5; n += 1) {
        await port.take(call(String(n), { text }))
        taken += 1
      }
    })()
    expect(await eventually(() => (taken === 3 ? undefined : `${taken}`), 5000)).toBeUndefined()
    await sleep(0)
    expect(taken).toBe(3)
    port.close()
    await taking
  })
})

describe('the end of the run', () => {
  test('aborts what runs, wakes what waits without executing it, and answers nothing more', async () => {
    const signals: AbortSignal[] = []
    const ends: ((value: string) => void)[] = []
    const execute = (_: unknown, { signal }: ToolContext): Promise<string> => {
      signals.push(signal)
      return new Promise((resolve) => {
        ends.push(resolve)
      })
    }
    const { port, answers, told } = bridge({ execute }, { concurrency: 2 })
    for (const id of ['1', '2', '3']) await port.take(call(id))
    expect(await eventually(() => (signals.length === 2 ? undefined : 'wait'), 2000)).toBeUndefined()
    port.close()
    port.close()
    for (const end of ends) end('late')
    await port.take(call('4'))
    await sleep(5)
    expect(signals.map(({ aborted, reason }) => [aborted, (reason as ToolCallError).code])).toEqual([
      [true, 'cancelled'],
      [true, 'cancelled'],
    ])
    expect([answers, told]).toEqual([[], ['began 1 write', 'began 2 write', 'began 3 write']])
  })

  test('is no unhandled rejection of tools that reject afterwards, and no warning of many listeners', async () => {
    const warned: unknown[] = []
    const onWarning = (warning: unknown): void => void warned.push(warning)
    process.on('warning', onWarning)
    process.on('unhandledRejection', onWarning)
    const execute = (_: unknown, { signal }: ToolContext): Promise<never> =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('late')))
      })
    const { port } = bridge({ execute })
    for (let n = 0; n < 40; n += 1) await port.take(call(String(n)))
    await sleep(5)
    port.close()
    await sleep(20)
    process.off('warning', onWarning)
    process.off('unhandledRejection', onWarning)
    expect(warned).toEqual([])
  })
})

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
