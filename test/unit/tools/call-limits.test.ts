import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { bridgedTools, defineTool, prepareTools, type ToolContext, type ToolOptions } from '../../../src/tools/index.ts'
import { eventually } from '../../support/eventually.ts'
import { bridge, call } from './sample-bridge.ts'

describe('limits', () => {
  test('maxCalls of a tool: further calls are rejected, and calls of other tools go on', async () => {
    const execute = vi.fn<() => number>(() => 1)
    const { port, waitForAnswers } = bridge({ execute, maxCalls: 2 })
    for (const id of ['1', '2', '3']) await port.take(call(id))
    const limit = { code: 'call_limit', message: 'work: this run may call it 2 times' }
    expect(new Map(await waitForAnswers(3))).toEqual(
      new Map<string, unknown>([
        ['1', 1],
        ['2', 1],
        ['3', limit],
      ]),
    )
    expect(execute).toHaveBeenCalledTimes(2)
  })

  test('maxCalls of the run counts the calls of all tools', async () => {
    const { port, waitForAnswers } = bridge({ execute: () => 1 }, { maxCalls: 1 })
    await port.take(call('1'))
    await port.take(call('2'))
    expect(new Map(await waitForAnswers(2)).get('2')).toEqual({
      code: 'call_limit',
      message: 'this run may call tools 1 times',
    })
  })

  test('calls that are refused count as well: unknown names, and those beyond the limit of their tool', async () => {
    const { port, waitForAnswers } = bridge({ execute: () => 1, maxCalls: 1 }, { maxCalls: 3 })
    for (const [id, name] of Object.entries(['wrok', 'work', 'work', 'work', 'wrok']))
      await port.take(call(id, {}, name))
    const codes = new Map((await waitForAnswers(5)).map(([id, answer]) => [id, (answer as { code?: string }).code]))
    expect(codes).toEqual(
      new Map([
        ['0', 'unknown_tool'],
        ['1', undefined],
        ['2', 'call_limit'],
        ['3', 'call_limit'],
        ['4', 'call_limit'],
      ]),
    )
  })

  test('a similar name is searched for the first 20 unknown ones only, so that a flood costs no time', async () => {
    const { port, waitForAnswers } = bridge({ execute: () => 1 })
    for (let n = 0; n < 21; n += 1) await port.take(call(String(n), {}, 'wrok'))
    const messages = (await waitForAnswers(21)).map(([, answer]) => (answer as { message: string }).message)
    expect(messages.map((message) => message.includes('Did you mean "work"?'))).toEqual([
      ...Array.from({ length: 20 }, () => true),
      false,
    ])
  })

  test.each([
    ['of the tool', { concurrency: 2 }, {}],
    ['of the run', {}, { concurrency: 2 }],
  ])('concurrency %s: at most that many at a time, the others in order of arrival', async (_of, own, limits) => {
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
    const { port, waitForAnswers } = bridge({ execute: execute as ToolOptions['execute'], ...own }, limits)
    for (let n = 0; n < 6; n += 1) await port.take(call(String(n), { n }))
    for (let n = 0; n < 6; n += 1) {
      expect(await eventually(() => (gates.has(n) ? undefined : `${n} did not begin`), 2000)).toBeUndefined()
      gates.get(n)?.()
    }
    expect((await waitForAnswers(6)).map(([id]) => id)).toEqual(['0', '1', '2', '3', '4', '5'])
    expect([begun, most]).toEqual([[0, 1, 2, 3, 4, 5], 2])
  })

  test('a call that waits for its tool does not use up concurrency of the run', async () => {
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
      noteCall: () => undefined,
      noteExecution: () => () => undefined,
      noteEnd: () => Promise.resolve(),
      redact: (text) => text,
      redactValue: (value) => value,
      noteApproval: () => () => undefined,
    })
    for (const id of ['1', '2', '3']) await port.take(call(id, {}, 'slow'))
    await port.take(call('4', {}, 'quick'))
    expect(await eventually(() => (done.length === 1 ? undefined : 'nothing'), 2000)).toBeUndefined()
    expect(done).toEqual(['4'])
    stuck.resolve(null)
    expect(await eventually(() => (done.length === 4 ? undefined : `${done.join()}`), 2000)).toBeUndefined()
  })

  test('timeoutMs: the script gets an error, the signal fires, the next call starts, and a late answer is dropped', async () => {
    const late = Promise.withResolvers<string>()
    const signals: AbortSignal[] = []
    const execute = ({ n }: { n: number }, { signal }: ToolContext): unknown => {
      signals.push(signal)
      return n === 1 ? late.promise : 'second'
    }
    const { port, waitForAnswers, answers } = bridge({
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
    expect(await waitForAnswers(2)).toEqual(want)
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
    late.resolve('late')
    await sleep(0)
    expect(answers).toEqual(want)
  })

  test('a call has 60 s by default', async () => {
    vi.useFakeTimers()
    const { port, answers } = bridge({ execute: () => new Promise(() => {}) })
    await port.take(call('1'))
    await vi.advanceTimersByTimeAsync(59_999)
    expect(answers).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(answers).toEqual([['1', { code: 'timed_out', message: 'work: no answer within 60000 ms' }]])
    vi.useRealTimers()
  })

  test.each([{ maxCalls: 0 }, { concurrency: 1.5 }, { maxCalls: Number.NaN }])('%j is refused', (limits) => {
    expect(() => bridge({}, limits)).toThrow(TypeError)
  })

  test('a thousand waiting calls: the next is accepted when one of them has ended', async () => {
    const gates: (() => void)[] = []
    const execute = (): Promise<void> =>
      new Promise((open) => {
        gates.push(open)
      })
    const { port, waitForAnswers } = bridge({ execute })
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
    await waitForAnswers(1100)
    clearInterval(opening)
  })
})
