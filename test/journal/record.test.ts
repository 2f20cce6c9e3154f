import { describe, expect, test } from 'vitest'
import { type JournalBody, type JournalEvent, recordOf } from '../../src/journal/index.ts'
import {
  attemptEnded,
  eventsOf,
  runEnded,
  runIdAt,
  runStarted,
  scriptExecuted,
  scriptGenerated,
} from './sample-events.ts'

const ID = runIdAt(1)
const read = (...bodies: readonly JournalBody[]): ReturnType<typeof recordOf> => recordOf(eventsOf(ID, bodies))

const TRACEBACK = 'Traceback\n  File "<script>", line 1\nZeroDivisionError: division by zero'
const place = { step: null, attempt: 1 }
const violation = { code: 'unknown_name', line: 1, column: 4, message: 'no prise', hint: 'price' }
const sandbox = scriptExecuted().sandbox

/** What an attempt has of which nothing is known but its number. */
const EMPTY = {
  status: null,
  error: null,
  traceback: null,
  prompt: null,
  generation: null,
  script: null,
  violations: [],
  hasResult: false,
  finalData: null,
  intermediates: [],
  logs: [],
  toolCalls: [],
  stdout: '',
  stderr: '',
  warnings: [],
  sandbox: null,
  executionMs: null,
  durationMs: null,
  repetition: null,
}

describe('a record of PLAN mode (OR-06)', () => {
  const call = { key: 'L1#1', line: 1, name: 'price', effect: 'read', args: { sku: 'a' } }
  const bodies: readonly JournalBody[] = [
    runStarted({ budget: { tokens: 1000, tool_calls: null, wall_ms: 5000 } }),
    { type: 'prompt_written', ...place, digest: 'p1', chars: 100, text: 'the prompt' },
    scriptGenerated({ script: 'prise()', model: 'small' }),
    { type: 'script_checked', ...place, policy: 'strict', ok: false, violations: [violation], ms: 3 },
    attemptEnded({ status: 'rejected', error: 'the script was rejected', duration_ms: 20 }),
    scriptGenerated({ attempt: 2, model: null, prompt_tokens: null, completion_tokens: 7 }),
    { type: 'sandbox_assigned', step: null, attempt: 2, sandbox_id: 's1', engine: 'local' },
    { type: 'tool_called', ...place, ...call, attempt: 2 },
    { type: 'tool_called', ...place, ...call, attempt: 2, key: 'L1#2' },
    { type: 'tool_called', ...place, ...call, attempt: 2, name: 'other' },
    {
      type: 'tool_answered',
      ...place,
      attempt: 2,
      key: 'L1#1',
      name: 'price',
      ok: true,
      ms: 1.5,
      result_json: '2',
      result_chars: 1,
      error: null,
    },
    {
      type: 'tool_answered',
      ...place,
      attempt: 2,
      key: 'L1#2',
      name: 'price',
      ok: false,
      ms: 2,
      result_json: null,
      result_chars: 0,
      error: { code: 'no_such_sku', message: 'no a' },
    },
    { type: 'intermediate', ...place, attempt: 2, label: 'half', data: { n: 1 } },
    { type: 'log', ...place, attempt: 2, level: 'info', message: 'so far' },
    scriptExecuted({
      attempt: 2,
      status: 'failed',
      error_kind: 'exception',
      error: 'ZeroDivisionError',
      traceback: TRACEBACK,
      has_result: false,
      final_data: null,
      stdout: 'out',
      stderr: 'err',
      warnings: [{ code: 'c', message: 'm' }],
    }),
    { type: 'stagnation_found', step: null, attempt: 2, repetition: 'same-error' },
    attemptEnded({ attempt: 2, status: 'failed', error: 'ZeroDivisionError' }),
    scriptGenerated({ attempt: 3, script: null, script_digest: null, answer: 'I cannot', model: 'small' }),
    attemptEnded({ attempt: 3, status: 'no-script', error: 'no Python' }),
  ]
  const attempts = [
    {
      ...EMPTY,
      number: 1,
      status: 'rejected',
      error: 'the script was rejected',
      prompt: { digest: 'p1', chars: 100, text: 'the prompt' },
      generation: { model: 'small', promptTokens: 10, completionTokens: 2, latencyMs: 5, answer: null },
      script: 'prise()',
      violations: [violation],
      durationMs: 20,
    },
    {
      ...EMPTY,
      number: 2,
      status: 'failed',
      error: 'ZeroDivisionError',
      traceback: TRACEBACK,
      generation: { model: null, promptTokens: null, completionTokens: 7, latencyMs: 5, answer: null },
      script: 'emit_result(1)',
      intermediates: [{ label: 'half', data: { n: 1 } }],
      logs: [{ level: 'info', message: 'so far' }],
      toolCalls: [
        { ...call, ok: true, ms: 1.5, resultJson: '2', error: null },
        { ...call, key: 'L1#2', ok: false, ms: 2, resultJson: null, error: { code: 'no_such_sku', message: 'no a' } },
        { ...call, name: 'other', ok: null, ms: null, resultJson: null, error: null },
      ],
      stdout: 'out',
      stderr: 'err',
      warnings: [{ code: 'c', message: 'm' }],
      sandbox,
      executionMs: 4,
      durationMs: 9,
      repetition: 'same-error',
    },
    {
      ...EMPTY,
      number: 3,
      status: 'no-script',
      error: 'no Python',
      generation: { model: 'small', promptTokens: 10, completionTokens: 2, latencyMs: 5, answer: 'I cannot' },
      durationMs: 9,
    },
  ]

  test('has each attempt with its violations, calls, data, tokens and times', () => {
    const ended = runEnded({
      status: 'retries-spent',
      error: 'no Python',
      final_data: null,
      partial: [1],
      prompt_tokens: 33,
      completion_tokens: 12,
      tool_calls: 3,
      duration_ms: 77,
    })
    const record = read(...bodies, ended)
    expect({ ...record, lastTraceback: record.lastTraceback() }).toEqual({
      lastTraceback: TRACEBACK,
      runId: ID,
      traceId: 't1',
      task: 'Add up',
      mode: 'plan',
      sandboxName: 'default',
      policy: 'strict',
      tools: ['price'],
      maxRetries: 3,
      maxSteps: null,
      budget: { tokens: 1000, tool_calls: null, wall_ms: 5000 },
      status: 'retries-spent',
      success: false,
      error: 'no Python',
      finalData: null,
      partial: [1],
      attempts,
      steps: [],
      models: ['small'],
      totalPromptTokens: 33,
      totalCompletionTokens: 12,
      totalToolCalls: 3,
      startedAt: '2026-01-02T03:04:00.000Z',
      durationMs: 77,
    })
  })

  test('without an end is unfinished, and counts what there is', () => {
    const record = read(...bodies)
    expect(record).toMatchObject({
      status: 'unfinished',
      success: false,
      error: 'the journal has no end: the process ended first, or the run goes on',
      finalData: null,
      partial: null,
      attempts,
      totalPromptTokens: 20,
      totalCompletionTokens: 11,
      totalToolCalls: 3,
      durationMs: (bodies.length - 1) * 1000,
    })
  })

  test('can be read however far the events go', () => {
    for (let length = 1; length <= bodies.length; length += 1) {
      const record = read(...bodies.slice(0, length))
      expect(record.status).toBe('unfinished')
      expect(JSON.parse(JSON.stringify(record))).toMatchObject({ runId: ID, task: 'Add up' })
    }
  })

  test('of a run that went well is a success without an error', () => {
    const record = read(
      runStarted(),
      scriptGenerated(),
      scriptExecuted(),
      attemptEnded(),
      runEnded({ final_data: { a: 1 } }),
    )
    expect(record).toMatchObject({
      status: 'completed',
      success: true,
      error: null,
      finalData: { a: 1 },
      partial: null,
    })
    expect(record.lastTraceback()).toBe(null)
  })

  test('of an answer that may be null is a success', () => {
    expect(read(runStarted(), runEnded({ final_data: null }))).toMatchObject({ success: true, finalData: null })
  })
})

describe('a record of INTERACTIVE mode (OR-06)', () => {
  const started = runStarted({ mode: 'interactive', max_steps: 5 })

  test('has its attempts within its steps', () => {
    const record = read(
      started,
      { type: 'step_started', step: 1, force_finish: false },
      scriptGenerated({ step: 1 }),
      scriptExecuted({ step: 1, status: 'failed', error: 'x', traceback: 'first' }),
      attemptEnded({ step: 1, status: 'failed', error: 'x' }),
      scriptGenerated({ step: 1, attempt: 2 }),
      scriptExecuted({ step: 1, attempt: 2, status: 'step-done', has_result: false, final_data: null }),
      attemptEnded({ step: 1, attempt: 2, status: 'step-done' }),
      { type: 'step_ended', step: 1, ok: true, error: null },
      { type: 'step_started', step: 2, force_finish: true },
      scriptGenerated({ step: 2, model: 'large' }),
      scriptExecuted({ step: 2, status: 'failed', error: 'y', traceback: 'second' }),
      attemptEnded({ step: 2, status: 'failed', error: 'y' }),
      { type: 'step_ended', step: 2, ok: false, error: 'y' },
      runEnded({ status: 'stagnated', error: 'y', final_data: null, partial: [] }),
    )
    expect(record).toMatchObject({
      mode: 'interactive',
      maxSteps: 5,
      status: 'stagnated',
      attempts: [],
      models: ['m', 'large'],
      steps: [
        {
          number: 1,
          forceFinish: false,
          ok: true,
          error: null,
          attempts: [
            { number: 1, status: 'failed', traceback: 'first' },
            { number: 2, status: 'step-done', error: null, traceback: null },
          ],
        },
        { number: 2, forceFinish: true, ok: false, error: 'y', attempts: [{ number: 1, status: 'failed' }] },
      ],
    })
    expect(record.lastTraceback()).toBe('second')
  })

  test('without an end has the step under way without one, too', () => {
    const record = read(started, { type: 'step_started', step: 1, force_finish: false }, scriptGenerated({ step: 1 }))
    expect(record).toMatchObject({
      status: 'unfinished',
      steps: [{ number: 1, ok: null, error: null, attempts: [{ ...EMPTY, generation: {}, script: 'emit_result(1)' }] }],
    })
    expect(record.totalPromptTokens).toBe(10)
  })
})

describe('stored events that are damaged', () => {
  const whole: readonly JournalBody[] = [
    runStarted(),
    { type: 'step_started', step: 1, force_finish: false },
    { type: 'prompt_written', ...place, digest: 'd', chars: 1, text: null },
    scriptGenerated(),
    { type: 'script_checked', ...place, policy: 'strict', ok: false, violations: [violation], ms: 1 },
    { type: 'sandbox_assigned', ...place, sandbox_id: 's1', engine: 'local' },
    { type: 'tool_called', ...place, key: 'L1#1', line: 1, name: 'price', effect: 'read', args: {} },
    {
      type: 'tool_answered',
      ...place,
      key: 'L1#1',
      name: 'price',
      ok: false,
      ms: 1,
      result_json: null,
      result_chars: 0,
      error: { code: 'c', message: 'm' },
    },
    { type: 'intermediate', ...place, label: 'l', data: [1] },
    { type: 'log', ...place, level: 'info', message: 'm' },
    scriptExecuted({ warnings: [{ code: 'c', message: 'm' }] }),
    { type: 'stagnation_found', ...place, repetition: 'cycle' },
    attemptEnded(),
    { type: 'step_ended', step: 1, ok: true, error: null },
    runEnded(),
  ]
  const events = eventsOf(ID, whole)
  const shapeOf = (given: unknown): unknown => {
    if (typeof given !== 'object' || given === null) return typeof given
    if (Array.isArray(given)) return 'list'
    return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, shapeOf(value)]))
  }

  const damages = events.flatMap((event, index) =>
    Object.keys(event)
      .filter((name) => name !== 'type')
      .flatMap((name) =>
        [null, undefined, 5, 'x', true, [null], [5], {}].map((value) => ({
          index,
          event: { ...event, [name]: value },
        })),
      ),
  )

  test('never keep the others from being read, and each field of the record is of its kind', () => {
    // What may be null or anything is no matter of kinds.
    const open = { error: 0, finalData: 0, partial: 0, traceId: 0, maxSteps: 0, budget: 0, attempts: 0, steps: 0 }
    const wanted = shapeOf({ ...recordOf(events), ...open })
    expect(damages.length).toBeGreaterThan(1000)
    for (const { index, event } of damages) {
      const record = recordOf(events.with(index, event))
      const { violations, warnings, toolCalls } = record.attempts[0] ?? { violations: [], warnings: [], toolCalls: [] }
      const texts = [...violations, ...warnings].map(({ code, message }) => typeof code + typeof message)
      expect({
        event,
        shape: shapeOf({ ...record, ...open }),
        texts: [...new Set([...texts, 'stringstring'])],
        lines: violations.every(({ line }) => typeof line === 'number'),
        keys: toolCalls.every(({ key }) => typeof key === 'string'),
        traceback: typeof (record.lastTraceback() ?? ''),
      }).toEqual({ event, shape: wanted, texts: ['stringstring'], lines: true, keys: true, traceback: 'string' })
    }
  })

  test('are left out, and so is what is no event at all', () => {
    const record = recordOf([
      ...events.slice(0, 4),
      ...([null, 5, {}, { type: 'later' }, { type: 'toString' }] as unknown as JournalEvent[]),
      { ...events[4], violations: 'none' } as unknown as JournalEvent,
      { ...events[10], stdout: 'out' } as JournalEvent,
    ])
    expect(record.attempts).toMatchObject([{ script: 'emit_result(1)', violations: [], stdout: 'out' }])
  })

  test('at the beginning count for what can be read of it', () => {
    const first = { ...events[0], task: 5, tools: 'price', budget: { tokens: 'x' }, mode: 'plan?' }
    expect(recordOf([first as unknown as JournalEvent])).toMatchObject({
      task: '',
      tools: [],
      budget: { tokens: null, tool_calls: null, wall_ms: null },
      mode: 'plan',
      sandboxName: 'default',
      maxRetries: 3,
    })
  })
})

describe('events that are no journal of a run', () => {
  test('give no record', () => {
    expect(() => recordOf([])).toThrow('these events are no journal of a run: it begins with run_started')
    expect(() => read(runEnded())).toThrow(TypeError)
  })

  test('an answer without its call is left out', () => {
    const answer = { key: 'L1#1', name: 'price', ok: true, ms: 1, result_json: '1', result_chars: 1, error: null }
    expect(read(runStarted(), { type: 'tool_answered', ...place, ...answer }).attempts).toEqual([
      { ...EMPTY, number: 1 },
    ])
  })
})

test('thousands of calls of a run are read in time in proportion', () => {
  const timed = (count: number): number => {
    const bodies = Array.from({ length: count }, (_, index): JournalBody[] => {
      const key = `L1#${index + 1}`
      return [
        { type: 'tool_called', ...place, key, line: 1, name: 'price', effect: 'read', args: {} },
        {
          type: 'tool_answered',
          ...place,
          key,
          name: 'price',
          ok: true,
          ms: 1,
          result_json: '1',
          result_chars: 1,
          error: null,
        },
      ]
    })
    const events = eventsOf(ID, [runStarted(), ...bodies.flat()])
    const started = performance.now()
    expect(recordOf(events).totalToolCalls).toBe(count)
    return performance.now() - started
  }
  timed(1000)
  // Eight times the calls: a square would take 64 times as long.
  const short = timed(2500)
  expect(timed(20_000)).toBeLessThan(Math.max(28 * short, 100))
})
