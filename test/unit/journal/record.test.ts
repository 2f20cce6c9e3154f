import { describe, expect, test } from 'vitest'
import type { JournalBody } from '../../../src/journal/index.ts'
import { EMPTY, ID, readRecord } from './read-record.ts'
import {
  attemptEnded,
  PLACE,
  runEnded,
  runStarted,
  scriptExecuted,
  scriptGenerated,
  toolAnswered,
  VIOLATION,
} from './sample-events.ts'

const TRACEBACK = 'Traceback\n  File "<script>", line 1\nZeroDivisionError: division by zero'
const sandbox = {
  id: 's1',
  engine: 'local',
  level: 'kernel',
  python: '3.12.0',
  use: 1,
  limitsEnforced: ['memory'],
  network: 'none',
}

describe('a record of PLAN mode (OR-06)', () => {
  const call = { key: 'L1#1', line: 1, name: 'price', effect: 'read', args: { sku: 'a' } }
  const bodies: readonly JournalBody[] = [
    runStarted({ budget: { tokens: 1000, tool_calls: null, wall_ms: 5000 } }),
    { type: 'prompt_written', ...PLACE, digest: 'p1', chars: 100, text: 'the prompt' },
    scriptGenerated({ script: 'prise()', model: 'small' }),
    { type: 'script_checked', ...PLACE, policy: 'strict', ok: false, violations: [VIOLATION], ms: 3 },
    attemptEnded({ status: 'rejected', error: 'the script was rejected', duration_ms: 20 }),
    scriptGenerated({ attempt: 2, model: null, prompt_tokens: null, completion_tokens: 7 }),
    { type: 'sandbox_assigned', step: null, attempt: 2, sandbox_id: 's1', engine: 'local' },
    { type: 'tool_called', ...PLACE, ...call, attempt: 2 },
    { type: 'tool_called', ...PLACE, ...call, attempt: 2, key: 'L1#2' },
    { type: 'tool_called', ...PLACE, ...call, attempt: 2, name: 'other' },
    toolAnswered({ attempt: 2, ms: 1.5, result_json: '2' }),
    toolAnswered({
      attempt: 2,
      key: 'L1#2',
      ok: false,
      ms: 2,
      result_json: null,
      result_chars: 0,
      error: { code: 'no_such_sku', message: 'no a' },
    }),
    { type: 'intermediate', ...PLACE, attempt: 2, label: 'half', data: { n: 1 } },
    { type: 'log', ...PLACE, attempt: 2, level: 'info', message: 'so far' },
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
      files: [{ path: 'out/a', size: 1, sha256: 'f' }],
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
      generation: {
        model: 'small',
        promptTokens: 10,
        cachedPromptTokens: null,
        completionTokens: 2,
        latencyMs: 5,
        answer: null,
      },
      script: 'prise()',
      violations: [VIOLATION],
      durationMs: 20,
    },
    {
      ...EMPTY,
      number: 2,
      status: 'failed',
      error: 'ZeroDivisionError',
      traceback: TRACEBACK,
      generation: {
        model: null,
        promptTokens: null,
        cachedPromptTokens: null,
        completionTokens: 7,
        latencyMs: 5,
        answer: null,
      },
      script: 'emit_result(1)',
      intermediates: [{ label: 'half', data: { n: 1 } }],
      displays: [],
      logs: [{ level: 'info', message: 'so far' }],
      toolCalls: [
        { ...call, ok: true, ms: 1.5, resultJson: '2', error: null },
        { ...call, key: 'L1#2', ok: false, ms: 2, resultJson: null, error: { code: 'no_such_sku', message: 'no a' } },
        { ...call, name: 'other', ok: null, ms: null, resultJson: null, error: null },
      ],
      stdout: 'out',
      stderr: 'err',
      warnings: [{ code: 'c', message: 'm' }],
      files: [{ path: 'out/a', size: 1, sha256: 'f' }],
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
      generation: {
        model: 'small',
        promptTokens: 10,
        cachedPromptTokens: null,
        completionTokens: 2,
        latencyMs: 5,
        answer: 'I cannot',
      },
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
    const record = readRecord(...bodies, ended)
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
      budget: { tokens: 1000, toolCalls: null, wallMs: 5000, cost: null },
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
      cost: null,
      totalToolCalls: 3,
      startedAt: '2026-01-02T03:04:00.000Z',
      durationMs: 77,
    })
  })

  test('without an end is unfinished, and counts the existing events', () => {
    const record = readRecord(...bodies)
    expect(record).toMatchObject({
      status: 'unfinished',
      success: false,
      error: 'the journal has no end: the process ended early, or the task is still going',
      finalData: null,
      partial: null,
      attempts,
      totalPromptTokens: 20,
      totalCompletionTokens: 11,
      totalToolCalls: 3,
      durationMs: (bodies.length - 1) * 1000,
    })
  })

  test('has the cost of each attempt and the sum; an old journal has none', () => {
    const priced = [scriptGenerated({ cost: 0.5 }), scriptGenerated({ attempt: 2, cost: 0.25 })]
    expect(readRecord(runStarted(), ...priced)).toMatchObject({ cost: 0.75, attempts: [{ cost: 0.5 }, { cost: 0.25 }] })
    expect(readRecord(runStarted(), ...priced, runEnded({ cost: 0.75 })).cost).toBe(0.75)
    expect(readRecord(runStarted(), ...priced, scriptGenerated({ attempt: 3, cost: null })).cost).toBe(null)
    expect(readRecord(runStarted(), scriptGenerated(), runEnded())).toMatchObject({
      cost: null,
      budget: { cost: null },
    })
  })

  test('can be read for any prefix of the events', () => {
    for (let length = 1; length <= bodies.length; length += 1) {
      const record = readRecord(...bodies.slice(0, length))
      expect(record.status).toBe('unfinished')
      expect(JSON.parse(JSON.stringify(record))).toMatchObject({ runId: ID, task: 'Add up' })
    }
  })

  test('of a successful run is a success without an error', () => {
    const record = readRecord(
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

  test('of a null answer is a success', () => {
    expect(readRecord(runStarted(), runEnded({ final_data: null }))).toMatchObject({ success: true, finalData: null })
  })
})

describe('reviews of a script', () => {
  const isolation = { engine: 'local', level: 'kernel', python: '3.12.0', limits_enforced: ['memory'], network: 'none' }
  const proposed: Extract<JournalBody, { type: 'script_proposed' }> = {
    type: 'script_proposed',
    ...PLACE,
    proposal_id: 'p1',
    plan: 'I add',
    script: 'prise()',
    sha256: 'd',
    dependencies: ['a==1'],
    tools: [{ name: 'price', effect: 'read' }],
    sandbox: isolation,
    problem: null,
  }
  const decided: Extract<JournalBody, { type: 'proposal_decided' }> = {
    type: 'proposal_decided',
    ...PLACE,
    proposal_id: 'p1',
    decision: 'accept',
    by: 'ann',
    text: null,
    script: 'price()',
    waited_ms: 5,
  }
  const shown = {
    proposalId: 'p1',
    plan: 'I add',
    script: 'prise()',
    sha256: 'd',
    dependencies: ['a==1'],
    tools: [{ name: 'price', effect: 'read' }],
    sandbox: { engine: 'local', level: 'kernel', python: '3.12.0', limitsEnforced: ['memory'], network: 'none' },
    problem: null,
    proposedAt: '2026-01-02T03:04:02.000Z',
  }

  test('tell what was shown, who decided, and the script of the reviewer', () => {
    const [attempt] = readRecord(runStarted(), scriptGenerated({ script: 'prise()' }), proposed, decided).attempts
    const decision = { decision: 'accept', by: 'ann', text: null, script: 'price()', waitedMs: 5 }
    expect(attempt).toMatchObject({
      script: 'price()',
      reviews: [{ ...shown, decision: { ...decision, decidedAt: '2026-01-02T03:04:03.000Z' } }],
    })
  })

  test('that nobody decided stay open; a decision about another one is left out', () => {
    const events = [runStarted(), scriptGenerated({ script: 'prise()' }), proposed, { ...decided, proposal_id: 'p2' }]
    expect(readRecord(...events).attempts[0]).toMatchObject({
      script: 'prise()',
      reviews: [{ ...shown, decision: null }],
    })
  })
})
