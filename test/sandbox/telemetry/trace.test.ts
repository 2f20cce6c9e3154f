import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createSandglass, type Sandglass } from '../../../src/index.ts'
import { CHANNELS, currentTrace, publish, type TelemetryEvent, withTrace } from '../../../src/telemetry/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()

const aNumber: unknown = expect.any(Number)
const heard: TelemetryEvent[] = []
const listener = (message: unknown): void => void heard.push(message as TelemetryEvent)
beforeAll(() => {
  for (const name of Object.values(CHANNELS)) subscribe(name, listener)
})
afterAll(() => {
  for (const name of Object.values(CHANNELS)) unsubscribe(name, listener)
})
afterEach(() => {
  heard.length = 0
})

describe('withTrace (OR-09)', () => {
  test('applies to all calls below it, however late, and nowhere else', async () => {
    expect(currentTrace()).toBe(undefined)
    const late = withTrace({ traceId: 'a', user: 5 }, async () => {
      await sleep(1)
      return currentTrace()
    })
    expect(currentTrace()).toBe(undefined)
    expect(await late).toEqual({ traceId: 'a', user: 5 })
    expect(withTrace({ traceId: 'a' }, () => withTrace({ traceId: 'b' }, () => currentTrace()?.traceId))).toBe('b')
  })

  test('requires an id', () => {
    for (const wrong of [undefined, null, {}, { traceId: 5 }, 'a']) {
      expect(() => withTrace(wrong as { traceId: string }, () => 1)).toThrow('withTrace: traceId must be a string')
    }
  })

  test('returns or throws what the function does', () => {
    expect(withTrace({ traceId: 'a' }, () => 5)).toBe(5)
    const failure = new Error('x')
    expect(() =>
      withTrace({ traceId: 'a' }, () => {
        throw failure
      }),
    ).toThrow(failure)
  })
})

test('an event is not created without a listener', () => {
  for (const name of Object.values(CHANNELS)) unsubscribe(name, listener)
  let made = 0
  const event = (): TelemetryEvent => {
    made += 1
    return { event: 'run_ended', trace_id: null, run_id: 'r' }
  }
  publish('runEnded', event)
  expect(made).toBe(0)
  for (const name of Object.values(CHANNELS)) subscribe(name, listener)
  publish('runEnded', event)
  expect([made, heard.length]).toEqual([1, 1])
})

describe.skipIf(skip)('the events of a run (OR-09)', () => {
  let sg: Sandglass
  beforeAll(async () => {
    sg = await createSandglass({ engine: 'local', poolSize: 2, maxOverflow: 1 })
  })
  afterAll(() => sg.close())

  test('are the generation and execution of each script and the end, without scripts and data', async () => {
    const model = scriptedModel(
      { text: 'emit_result(1 / 0)', promptTokens: 5, completionTokens: 2, latencyMs: 3, model: 'm' },
      'emit_result("DATA")',
    )
    const { record } = await sg.solve('TASK', { model, traceId: 't' })
    const base = { trace_id: 't', run_id: record.runId }
    const place = { step: null, attempt: 1 }
    const sandbox = record.attempts.map(({ sandbox }) => ({
      sandbox_id: sandbox?.id,
      engine: sandbox?.engine,
      level: sandbox?.level,
    }))
    const anyMs = { duration_ms: aNumber }
    expect(heard).toEqual([
      {
        event: 'script_generated',
        ...base,
        ...place,
        ok: true,
        model: 'm',
        prompt_tokens: 5,
        completion_tokens: 2,
        cost: null,
        latency_ms: 3,
      },
      {
        event: 'script_executed',
        ...base,
        ...place,
        ok: false,
        status: 'failed',
        error_kind: 'error',
        error: 'ZeroDivisionError: division by zero',
        ...anyMs,
        tool_calls: 0,
        ...sandbox[0],
      },
      {
        event: 'script_generated',
        ...base,
        ...place,
        attempt: 2,
        ok: true,
        model: null,
        prompt_tokens: null,
        completion_tokens: null,
        cost: null,
        latency_ms: aNumber,
      },
      {
        event: 'script_executed',
        ...base,
        ...place,
        attempt: 2,
        ok: true,
        status: 'completed',
        error_kind: null,
        error: null,
        ...anyMs,
        tool_calls: 0,
        ...sandbox[1],
      },
      {
        event: 'run_ended',
        ...base,
        ok: true,
        status: 'completed',
        error: null,
        ...anyMs,
        prompt_tokens: record.totalPromptTokens,
        completion_tokens: record.totalCompletionTokens,
        cost: null,
        tool_calls: 0,
      },
    ])
    expect(JSON.stringify(heard)).not.toMatch(/DATA|TASK|emit_result/)
  })

  test('carries the trace of its caller, of two runs at a time, from within timers and streams', async () => {
    const solve = (traceId: string, answer: string): Promise<string> =>
      withTrace({ traceId }, async () => {
        await sleep(1)
        const model = async (): Promise<string> => {
          await sleep(2)
          return answer
        }
        const result = await sg.solve('Anything', { model })
        return result.record.runId
      })
    const started = Promise.withResolvers<string>()
    withTrace({ traceId: 'from-a-timer' }, () =>
      setTimeout(() => {
        const model = scriptedModel('emit_result(3)')
        const run = sg.solve('Anything', { model }).then(({ record }) => record.runId)
        run.then(started.resolve, started.reject)
      }, 1),
    )
    const streamed = withTrace({ traceId: 'of-a-stream' }, async () => {
      for await (const event of sg.solveStream('Anything', { model: scriptedModel('emit_result(4)') })) {
        if (event.type === 'result') return event.result.record.runId
      }
      return ''
    })
    const ids = await Promise.all([
      solve('a', 'emit_result(1)'),
      solve('b', 'emit_result(2)'),
      started.promise,
      streamed,
    ])
    const traces = ['a', 'b', 'from-a-timer', 'of-a-stream']
    const eventsOf = (runId: string): unknown[] =>
      heard.filter((one) => one.run_id === runId).map((one) => [one.event, one.trace_id])
    expect(ids.map(eventsOf)).toEqual(
      traces.map((trace) => ['script_generated', 'script_executed', 'run_ended'].map((event) => [event, trace])),
    )
  })

  test('without a trace have none, like the journal', async () => {
    const model = scriptedModel('emit_result(1)')
    const plain = await sg.solve('Anything', { model })
    const traced = await withTrace({ traceId: 'kept' }, () => sg.solve('Anything', { model }))
    expect([plain.record.traceId, traced.record.traceId]).toEqual([null, 'kept'])
    expect([...new Set(heard.map((one) => one.trace_id))]).toEqual([null, 'kept'])
  })

  test('without a script is reported as a failure', async () => {
    await sg.solve('Anything', { model: scriptedModel('I cannot.'), maxRetries: 0 })
    expect(heard.map((one) => [one.event, one['ok']])).toEqual([
      ['script_generated', false],
      ['run_ended', false],
    ])
  })

  test('has the same trace as the call of the model', async () => {
    const seen: unknown[] = []
    const model = scriptedModel(() => {
      seen.push(currentTrace()?.traceId)
      return 'emit_result(1)'
    })
    await withTrace({ traceId: 'down-here' }, () => sg.solve('Anything', { model }))
    expect(seen).toEqual(['down-here'])
  })

  test('hides secrets in its errors', async () => {
    const model = scriptedModel('emit_result(int("sk-123456"))')
    await sg.solve('Anything', { model, maxRetries: 0, hide: { KEY: 'sk-123456' } })
    expect(heard.map((one) => one['error'] ?? null)).toEqual([
      null,
      expect.stringMatching(/^ValueError: .*'\[redacted:KEY\]'$/),
      expect.stringContaining('[redacted:KEY]'),
    ])
  })
})
