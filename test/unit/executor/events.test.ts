import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setImmediate } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type RunEvent, ScriptExecutor } from '../../../src/executor/index.ts'
import { replayChannel, wireLines } from '../../../src/testing/index.ts'
import { done, error, frame, ID, intermediate, log, play, result, sandboxOf } from './wire.ts'

afterEach(() => {
  vi.useRealTimers()
})

const cancelled = wireLines(done({ cause: 'cancelled', exit_code: null, by: 'host' }))

describe('callbacks', () => {
  // EX-12, EX-13
  test('are awaited in order, while the script runs, and nothing is read meanwhile', async () => {
    const steps: string[] = []
    const sandbox = sandboxOf([intermediate('a', 1), intermediate('b', 2), log('c'), done()])
    const readWhenCalled: number[] = []
    const slow = async ({ label }: { label: string }): Promise<void> => {
      steps.push(`${label} begins`)
      readWhenCalled.push(sandbox.received)
      await setImmediate()
      readWhenCalled.push(sandbox.received)
      steps.push(`${label} ends`)
    }
    const onLog = ({ message, level }: { message: string; level: string }): unknown => steps.push(`${level} ${message}`)
    await new ScriptExecutor({ onIntermediate: slow, onLog }).run({ sandbox, script: 'x', executionId: ID })
    expect(steps).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'info c'])
    expect(readWhenCalled).toEqual([1, 1, 2, 2])
  })

  test('onEvent gets every event of the run but the result', async () => {
    const events: RunEvent[] = []
    await play(
      [frame('stdout', { text: 'o' }), intermediate('p', 1), log('l'), result(1), result(2), error('late'), done()],
      {
        onEvent: (event) => events.push(event),
      },
    )
    expect(events).toEqual([
      { type: 'started', executionId: ID, sandboxId: 'replay' },
      { type: 'stdout', executionId: ID, text: 'o' },
      { type: 'intermediate', executionId: ID, label: 'p', data: 1 },
      { type: 'log', executionId: ID, level: 'info', message: 'l' },
      { type: 'final_result', executionId: ID, data: 1 },
    ])
  })

  // EX-12
  test.each(['confirms', 'does not confirm'])('one that throws fails the run; the harness %s', async (how) => {
    vi.useFakeTimers()
    const thrown = new Error('disk full')
    const calls = vi.fn<() => void>(() => {
      throw thrown
    })
    const running = play([intermediate('a', 1), intermediate('b', 2), result(1)], {
      onIntermediate: calls,
      replay: {
        after: 'open',
        respond: ({ type }) => (type === 'cancel' && how === 'confirms' ? cancelled : undefined),
      },
    })
    await vi.advanceTimersByTimeAsync(2000)
    const { result: got, sandbox } = await running
    expect(got).toMatchObject({
      status: 'failed',
      errorKind: 'internal',
      error: 'onIntermediate threw: disk full',
      success: false,
      cause: thrown,
    })
    expect(got.cause).toBe(thrown)
    expect(calls).toHaveBeenCalledTimes(1)
    expect(sandbox.sent.map(({ type }) => type)).toEqual(['execute', 'cancel'])
    expect(sandbox.destroyed).toBe(true)
  })

  test('one that throws after the result is a warning, with the cause', async () => {
    const { result: got, sandbox } = await play([result(1), log('x')], {
      onLog: () => Promise.reject(new Error('late')),
      replay: { after: 'open', respond: ({ type }) => (type === 'cancel' ? cancelled : undefined) },
    })
    expect(got).toMatchObject({ status: 'completed', finalData: 1, cause: { message: 'late' } })
    expect(got.warnings.map(({ code }) => code)).toEqual(['callback_failed', 'cancelled'])
    expect(sandbox.destroyed).toBe(true)
  })

  test('with one that throws on the first event nothing is sent', async () => {
    const { result: got, sandbox } = await play([done()], {
      onEvent: () => {
        throw new TypeError('no')
      },
    })
    expect(got).toMatchObject({ status: 'failed', error: 'onEvent threw: no' })
    expect(sandbox.sent).toEqual([])
  })

  // EX-08
  test('one that never settles does not outlive the backstop', async () => {
    vi.useFakeTimers()
    const running = play([log('x')], { onLog: () => Promise.withResolvers().promise, replay: { after: 'open' } })
    await vi.advanceTimersByTimeAsync(35_000)
    const { result: got, sandbox } = await running
    expect([got.status, sandbox.destroyed]).toEqual(['timed-out', true])
  })
})

// EX-13
describe('a stream', () => {
  test('gives the events and ends with the result', async () => {
    const sandbox = sandboxOf([log('a'), intermediate('p', 1), result(2), done()])
    const events = await Array.fromAsync(new ScriptExecutor().stream({ sandbox, script: 'x', executionId: ID }))
    expect(events.map(({ type }) => type)).toEqual(['started', 'log', 'intermediate', 'final_result', 'result'])
    expect(events.every(({ executionId }) => executionId === ID)).toBe(true)
    expect(events.at(-1)).toMatchObject({ result: { status: 'completed', finalData: 2 } })
    expect(sandbox.destroyed).toBe(false)
  })

  test('reads only as far as its consumer', async () => {
    const sandbox = sandboxOf([...Array.from({ length: 50 }, (_, index) => log(String(index))), done()])
    const seen: number[] = []
    for await (const event of new ScriptExecutor({ mode: 'interactive' }).stream({
      sandbox,
      script: 'x',
      executionId: ID,
    })) {
      await setImmediate()
      if (event.type === 'log') seen.push(sandbox.received - Number(event.message))
    }
    // The consumer has one event, and one is ready.
    expect(Math.max(...seen)).toBeLessThanOrEqual(2)
    expect(seen).toHaveLength(50)
  })

  test('that is left early cancels the run and has settled when the loop ends', async () => {
    const sandbox = sandboxOf([log('a'), log('b')], {
      after: 'open',
      respond: ({ type }) => (type === 'cancel' ? cancelled : undefined),
    })
    for await (const event of new ScriptExecutor().stream({ sandbox, script: 'x', executionId: ID })) {
      if (event.type === 'log') break
    }
    expect(sandbox.sent.map(({ type }) => type)).toEqual(['execute', 'cancel'])
    // Its channel is free again.
    const next = new ScriptExecutor().run({ sandbox, script: 'y', signal: AbortSignal.abort() })
    expect(await next).toMatchObject({ status: 'cancelled' })
    expect(sandbox.destroyed).toBe(false)
  })

  test('throws the errors of run', async () => {
    const sandbox = replayChannel([])
    const events = new ScriptExecutor().stream({ sandbox, script: 'x', executionId: '' })
    await expect(events.next()).rejects.toMatchObject({ code: 'invalid_request' })
    expect(sandbox.sent).toEqual([])
  })

  test('of a run that its own signal cancels ends with the result', async () => {
    const abort = new AbortController()
    const sandbox = sandboxOf([log('a')], {
      after: 'open',
      respond: ({ type }) => (type === 'cancel' ? cancelled : undefined),
    })
    const types: string[] = []
    const request = { sandbox, script: 'x', executionId: ID, signal: abort.signal }
    for await (const event of new ScriptExecutor().stream(request)) {
      types.push(event.type === 'result' ? event.result.status : event.type)
      if (event.type === 'log') abort.abort()
    }
    expect(types).toEqual(['started', 'log', 'cancelled'])
  })
})

// EX-11
test('a skipped line is published on its diagnostics channel, redacted, and only when somebody listens', async () => {
  const messages: unknown[] = []
  const listener = (message: unknown): unknown => messages.push(message)
  const run = (): Promise<unknown> =>
    play([Buffer.from('print of s3cret\n'), { type: 'nonsense' }, done()], { request: { secrets: { K: 's3cret' } } })
  await run()
  subscribe('sandglass:executor', listener)
  try {
    await run()
  } finally {
    unsubscribe('sandglass:executor', listener)
  }
  expect(messages).toEqual([
    { event: 'skipped-line', executionId: ID, reason: 'not JSON', text: 'print of [redacted:K]' },
    { event: 'skipped-line', executionId: ID, reason: 'no known type', text: '{"type":"nonsense"}' },
  ])
})
