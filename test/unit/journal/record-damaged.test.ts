import { describe, expect, test } from 'vitest'
import { type JournalBody, type JournalEvent, recordOf } from '../../../src/journal/index.ts'
import { EMPTY, ID, readRecord } from './read-record.ts'
import {
  attemptEnded,
  eventsOf,
  PLACE,
  runEnded,
  runStarted,
  scriptExecuted,
  scriptGenerated,
  toolAnswered,
  VIOLATION,
} from './sample-events.ts'

describe('stored events that are damaged', () => {
  const whole: readonly JournalBody[] = [
    runStarted(),
    { type: 'step_started', step: 1, force_finish: false },
    { type: 'prompt_written', ...PLACE, digest: 'd', chars: 1, text: null },
    scriptGenerated(),
    { type: 'script_checked', ...PLACE, policy: 'strict', ok: false, violations: [VIOLATION], ms: 1 },
    { type: 'sandbox_assigned', ...PLACE, sandbox_id: 's1', engine: 'local' },
    { type: 'tool_called', ...PLACE, key: 'L1#1', line: 1, name: 'price', effect: 'read', args: {} },
    toolAnswered({ ok: false, result_json: null, result_chars: 0, error: { code: 'c', message: 'm' } }),
    { type: 'intermediate', ...PLACE, label: 'l', data: [1] },
    { type: 'log', ...PLACE, level: 'info', message: 'm' },
    scriptExecuted({ warnings: [{ code: 'c', message: 'm' }] }),
    { type: 'stagnation_found', ...PLACE, repetition: 'cycle' },
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

  test('do not prevent the reading of other events, and each field of the record has its type', () => {
    // Fields that may be null or hold any value are not checked.
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

  test('are left out, and so are values that are not events', () => {
    const record = recordOf([
      ...events.slice(0, 4),
      ...([null, 5, {}, { type: 'later' }, { type: 'toString' }] as unknown as JournalEvent[]),
      { ...events[4], violations: 'none' } as unknown as JournalEvent,
      { ...events[10], stdout: 'out' } as JournalEvent,
    ])
    expect(record.attempts).toMatchObject([{ script: 'emit_result(1)', violations: [], stdout: 'out' }])
  })

  test('at the beginning count with their readable fields', () => {
    const first = { ...events[0], task: 5, tools: 'price', budget: { tokens: 'x' }, mode: 'plan?' }
    expect(recordOf([first as unknown as JournalEvent])).toMatchObject({
      task: '',
      tools: [],
      budget: { tokens: null, toolCalls: null, wallMs: null },
      mode: 'plan',
      sandboxName: 'default',
      maxRetries: 3,
    })
  })
})

describe('events that are not a journal', () => {
  test('give no record', () => {
    expect(() => recordOf([])).toThrow('these events are not the journal of a task, which begins with run_started')
    expect(() => readRecord(runEnded())).toThrow(TypeError)
  })

  test('an answer without its call is left out', () => {
    expect(readRecord(runStarted(), toolAnswered()).attempts).toEqual([{ ...EMPTY, number: 1 }])
  })
})
