import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import type { StandardToolSchema, ToolCallError, ToolContext } from '../../../src/tools/index.ts'
import { eventually } from '../../support/eventually.ts'
import { bridge, call } from './sample-bridge.ts'

describe('the host alone decides which tools may be called', () => {
  test.each(['wrok', '__proto__', 'constructor', 'toString', 'describe_tool', 'x'.repeat(256)])(
    'a call of %j is refused and executes nothing',
    async (name) => {
      const execute = vi.fn<() => null>(() => null)
      const { port, waitForAnswers, log } = bridge({ execute })
      await port.take(call('1', {}, name))
      const shown = JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name)
      const hint = name === 'wrok' ? ' Did you mean "work"?' : ''
      expect(await waitForAnswers(1)).toEqual([
        ['1', { code: 'unknown_tool', message: `no tool ${shown} in this run.${hint}` }],
      ])
      expect(log).toEqual(['began 1 null', 'ended 1 unknown_tool'])
      expect(execute).not.toHaveBeenCalled()
    },
  )

  test('an id is executed and answered once, even if it is repeated after its answer and with another name', async () => {
    const execute = vi.fn<(input: unknown) => unknown>((input) => input)
    const { port, waitForAnswers, answers, log } = bridge({ execute })
    await port.take(call('a', { n: 1 }))
    await port.take(call('a', { n: 2 }))
    await waitForAnswers(1)
    await port.take(call('a', { n: 3 }))
    await port.take(call('a', {}, 'other'))
    await port.take(call('b', { n: 4 }))
    await waitForAnswers(2)
    expect(answers).toEqual([
      ['a', { n: 1 }],
      ['b', { n: 4 }],
    ])
    expect(execute).toHaveBeenCalledTimes(2)
    expect(log).toEqual(['began a write', 'ended a ok', 'began b write', 'ended b ok'])
  })

  test('the tool gets the run, the call and its input', async () => {
    const execute = vi.fn<(input: unknown, context: ToolContext) => null>(() => null)
    const { port, waitForAnswers } = bridge({ execute })
    await port.take(call('c-1', { x: 1 }))
    await waitForAnswers(1)
    const signal: unknown = expect.any(AbortSignal)
    expect(execute).toHaveBeenCalledWith({ x: 1 }, { callId: 'c-1', executionId: 'run-1', signal })
  })

  test('a key __proto__ in the arguments is refused and changes no prototype', async () => {
    const execute = vi.fn<() => null>(() => null)
    const { port, waitForAnswers } = bridge({ execute })
    await port.take(call('1', JSON.parse('{"__proto__": {"polluted": 1}}') as Record<string, unknown>))
    expect(await waitForAnswers(1)).toEqual([
      ['1', { code: 'invalid_arguments', message: 'work: the key "__proto__" is not allowed' }],
    ])
    expect(execute).not.toHaveBeenCalled()
    expect({}).not.toHaveProperty('polluted')
  })
})

describe('the end of the run', () => {
  test('aborts running calls, drops waiting ones, and sends no further answers', async () => {
    const signals: AbortSignal[] = []
    const ends: ((value: string) => void)[] = []
    const execute = (_: unknown, { signal }: ToolContext): Promise<string> => {
      signals.push(signal)
      return new Promise((resolve) => {
        ends.push(resolve)
      })
    }
    const { port, answers, log } = bridge({ execute }, { concurrency: 2 })
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
    expect([answers, log]).toEqual([[], ['began 1 write', 'began 2 write', 'began 3 write']])
  })

  test('causes no unhandled rejection of tools that reject later, and no warning about many listeners', async () => {
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

// EX-08
describe("the time that is not the script's", () => {
  test.each([
    ['a tool that does not exist', {}, call('1', {}, 'other')],
    ['the key __proto__', {}, call('1', JSON.parse('{"__proto__": 1}') as Record<string, unknown>)],
    ['arguments that do not match', { input: { type: 'object', required: ['n'] } }, call('1')],
    ['arguments whose check takes too long', { input: schema(() => new Promise(() => {})), timeoutMs: 20 }, call('1')],
  ])('does not begin for %s', async (_what, options, frame) => {
    const execute = vi.fn<() => null>(() => null)
    const { port, waitForAnswers, clock } = bridge({ execute, ...options })
    await port.take(frame)
    await waitForAnswers(1)
    expect(execute).not.toHaveBeenCalled()
    expect(clock).toEqual([])
  })

  test('begins with execute, after the check of the arguments, and ends with the call', async () => {
    const checked = Promise.withResolvers<void>()
    const executed = Promise.withResolvers<null>()
    const execute = vi.fn<() => Promise<null>>(() => executed.promise)
    const validate = vi.fn<Validate>((value) => checked.promise.then(() => ({ value })))
    const { port, waitForAnswers, clock } = bridge({ execute, input: schema(validate) })
    await port.take(call('1'))
    await vi.waitFor(() => expect(validate).toHaveBeenCalledTimes(1), { timeout: 10_000 })
    expect(clock).toEqual([])
    checked.resolve()
    await vi.waitFor(() => expect(execute).toHaveBeenCalledTimes(1), { timeout: 10_000 })
    expect(clock).toEqual(['starts 1'])
    executed.resolve(null)
    await waitForAnswers(1)
    expect(clock).toEqual(['starts 1', 'ends 1'])
  })

  test('ends for a tool that does not answer within its time', async () => {
    const { port, waitForAnswers, clock } = bridge({ execute: () => new Promise(() => {}), timeoutMs: 20 })
    await port.take(call('1'))
    expect(await waitForAnswers(1)).toEqual([['1', { code: 'timed_out', message: 'work: no answer within 20 ms' }]])
    expect(clock).toEqual(['starts 1', 'ends 1'])
  })
})

type Validate = StandardToolSchema['~standard']['validate']

function schema(validate: Validate): StandardToolSchema {
  const json = { type: 'object' }
  return { '~standard': { vendor: 'test', validate, jsonSchema: { input: () => json, output: () => json } } }
}
