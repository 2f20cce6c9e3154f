import { describe, expect, test } from 'vitest'
import { EMPTY, readRecord } from './read-record.ts'
import { attemptEnded, runEnded, runStarted, scriptExecuted, scriptGenerated } from './sample-events.ts'

describe('a record of INTERACTIVE mode (OR-06)', () => {
  const started = runStarted({ mode: 'interactive', max_steps: 5 })

  test('groups its attempts by step', () => {
    const record = readRecord(
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

  test('without an end has an active step without an end', () => {
    const record = readRecord(
      started,
      { type: 'step_started', step: 1, force_finish: false },
      scriptGenerated({ step: 1 }),
    )
    expect(record).toMatchObject({
      status: 'unfinished',
      steps: [{ number: 1, ok: null, error: null, attempts: [{ ...EMPTY, generation: {}, script: 'emit_result(1)' }] }],
    })
    expect(record.totalPromptTokens).toBe(10)
  })
})
