import { expect, test } from 'vitest'
import type { RunEvent } from '../../../src/executor/index.ts'
import { Journal, type JournalEvent, memoryStore, newRunId, recordOf } from '../../../src/journal/index.ts'
import { ScriptNotes } from '../../../src/orchestrator/script-notes.ts'
import { Redactor } from '../../../src/redaction/index.ts'
import { runStarted } from '../journal/sample-events.ts'

const place = { step: null, attempt: 1 }
const executionId = 'e'

function callOf(callId: string, args: unknown): RunEvent {
  return { type: 'tool_call', executionId, callId, name: 'put', effect: 'write', args, line: 1 }
}

function answerTo(callId: string, resultJson: string): RunEvent {
  return { type: 'tool_result', executionId, callId, name: 'put', ok: true, ms: 1, error: null, resultJson }
}

/** The events of a script in the store of a journal. */
async function noted(events: readonly RunEvent[]): Promise<{ stored: readonly JournalEvent[]; calls: number }> {
  const store = memoryStore()
  const runId = newRunId()
  const redactor = new Redactor({ KEY: 'k3y-of-the-tool' })
  const journal = new Journal(runId, store, redactor, undefined)
  journal.write(runStarted())
  const notes = new ScriptNotes(journal, place, redactor)
  for (const event of events) notes.take(event)
  await journal.settle()
  return { stored: await store.read(runId), calls: notes.calls }
}

test('a journal keeps the length of large arguments and the head of large results, marked as cut', async () => {
  const zeros = Array.from({ length: 100_000 }, () => 0)
  const { stored } = await noted([
    callOf('a', { xs: zeros, b: 1 }),
    answerTo('a', `"${'x'.repeat(100_000)}"`),
    callOf('b', { b: 1, a: 'k3y-of-the-tool' }),
    answerTo('b', '1'),
  ])
  const [large, small] = recordOf(stored).attempts[0]?.toolCalls ?? []
  expect(large?.args).toEqual({ '…': 'about 195 KiB of JSON left out' })
  expect(large?.resultJson).toBe(`"${'x'.repeat(16 * 1024 - 1)}`)
  expect(stored.find(({ type }) => type === 'tool_answered')).toMatchObject({ result_chars: 100_002 })
  expect(JSON.stringify(small?.args)).toBe('{"a":"[redacted:KEY]","b":1}')
})

test('a journal keeps the first 1,000 calls of a script and counts them all', async () => {
  const ids = Array.from({ length: 1200 }, (_, index) => `c${index}`)
  const { stored, calls } = await noted(ids.flatMap((id) => [callOf(id, {}), answerTo(id, '1')]))
  expect(calls).toBe(1200)
  const listed = recordOf(stored).attempts[0]?.toolCalls ?? []
  expect(listed.map(({ key, ok }) => [key, ok])).toEqual(Array.from({ length: 1000 }, (_, i) => [`L1#${i + 1}`, true]))
})

test('a script cannot hide an approved call behind 1,000 others', async () => {
  const ids = Array.from({ length: 1500 }, (_, index) => `c${index}`)
  const of = { executionId, name: 'pay' }
  const asked = (callId: string): RunEvent[] => [
    { ...callOf(callId, { to: callId }), name: 'pay' } as RunEvent,
    { type: 'approval_requested', ...of, callId, approvalId: callId, effect: 'write', args: { to: callId } },
  ]
  const decided = (callId: string, approved: boolean): RunEvent => {
    const decision = { approved, reason: approved ? null : 'no', by: 'ann', args: null, waitedMs: 7 }
    return { type: 'approval_decided', ...of, callId, approvalId: callId, ...decision }
  }
  const { stored, calls } = await noted([
    ...ids.flatMap((id) => [callOf(id, {}), answerTo(id, '1')]),
    ...asked('eve'),
    ...asked('bob'),
    decided('eve', false),
    decided('bob', true),
    ...['eve', 'bob'].map((id) => ({ ...answerTo(id, '2'), name: 'pay' }) as RunEvent),
  ])
  expect(calls).toBe(1502)
  const listed = recordOf(stored).attempts[0]?.toolCalls ?? []
  expect(listed.length).toBe(1001)
  expect(listed.at(-1)).toMatchObject({
    name: 'pay',
    effect: 'write',
    args: { to: 'bob' },
    ok: true,
    resultJson: '2',
    approval: { approved: true, by: 'ann', waitedMs: 7 },
  })
})
