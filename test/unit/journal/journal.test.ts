import { describe, expect, test } from 'vitest'
import { Redactor } from '../../../src/redaction/index.ts'
import {
  Journal,
  type JournalBody,
  type JournalEvent,
  type JournalStore,
  memoryStore,
  newRunId,
} from '../../../src/journal/index.ts'
import { startOfRunId } from '../../../src/journal/run-id.ts'
import {
  attemptEnded,
  runEnded,
  runIdAt,
  runStarted,
  scriptExecuted,
  scriptGenerated,
  toolAnswered,
} from './sample-events.ts'

const nothing = new Redactor({})

function storeOf(append: JournalStore['append']): JournalStore {
  return { ...memoryStore(), append }
}

describe('a journal (OR-06)', () => {
  test('numbers its events without gaps, and gives them to the store and the listener', async () => {
    const store = memoryStore()
    const heard: JournalEvent[] = []
    const journal = new Journal(runIdAt(1), store, nothing, (event) => heard.push(event))
    for (const body of [runStarted(), scriptGenerated(), runEnded()]) journal.write(body)
    await journal.settle()
    expect(journal.events.map(({ v, run_id, seq, type }) => [v, run_id, seq, type])).toEqual([
      [1, runIdAt(1), 0, 'run_started'],
      [1, runIdAt(1), 1, 'script_generated'],
      [1, runIdAt(1), 2, 'run_ended'],
    ])
    for (const { at } of journal.events) expect(new Date(at).toISOString()).toBe(at)
    expect(heard).toEqual(journal.events)
    expect(await store.read(runIdAt(1))).toEqual(journal.events)
  })

  test('ignores exceptions of a listener', async () => {
    const journal = new Journal(runIdAt(1), memoryStore(), nothing, () => {
      throw new Error('a listener')
    })
    journal.write(runStarted())
    journal.write(runEnded())
    await journal.settle()
    expect(journal.events.length).toBe(2)
  })

  test('whose store throws reports the error on request, and writes nothing more to the store', async () => {
    const failure = new Error('disk full')
    const seen: number[] = []
    const store = storeOf(({ seq }) => {
      seen.push(seq)
      if (seq === 1) throw failure
    })
    const journal = new Journal(runIdAt(1), store, nothing, undefined)
    for (const body of [runStarted(), scriptGenerated(), scriptExecuted(), runEnded()]) journal.write(body)
    await expect(journal.settle()).rejects.toBe(failure)
    await expect(journal.settle()).rejects.toBe(failure)
    expect(seen).toEqual([0, 1])
    expect(journal.events.length).toBe(4)
  })

  test('whose store rejects later reports the error, too, and leaves no gap', async () => {
    const failure = new Error('connection lost')
    const seen: number[] = []
    const store = storeOf(async ({ seq }) => {
      seen.push(seq)
      await Promise.resolve()
      if (seq === 1) throw failure
    })
    const journal = new Journal(runIdAt(1), store, nothing, undefined)
    for (const body of [runStarted(), scriptGenerated(), scriptExecuted(), runEnded()]) journal.write(body)
    await expect(journal.settle()).rejects.toBe(failure)
    expect(seen).toEqual([0, 1])
  })

  test('reports a failure that is undefined', async () => {
    const journal = new Journal(
      runIdAt(1),
      storeOf(async () => {
        // oxlint-disable-next-line only-throw-error
        throw undefined
      }),
      nothing,
      undefined,
    )
    journal.write(runStarted())
    await expect(journal.settle()).rejects.toBe(undefined)
  })

  test('passes events to a slow store one by one, and settles when the last is stored', async () => {
    const kept: number[] = []
    let atOnce = 0
    const store = storeOf(async ({ seq }) => {
      atOnce += 1
      expect(atOnce).toBe(1)
      // The first takes the longest.
      for (let turn = 0; turn < 20 - seq; turn += 1) await Promise.resolve()
      kept.push(seq)
      atOnce -= 1
    })
    const journal = new Journal(runIdAt(1), store, nothing, undefined)
    for (let count = 0; count < 10; count += 1) journal.write(scriptGenerated())
    await journal.settle()
    expect(kept).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  test('waits for a thenable', async () => {
    const kept: number[] = []
    const thenable = (seq: number): PromiseLike<void> => ({
      // oxlint-disable-next-line unicorn/no-thenable
      then: (resolve) =>
        Promise.resolve()
          .then(() => kept.push(seq))
          .then(() => resolve?.(undefined) as never),
    })
    const store = storeOf((({ seq }: JournalEvent) => thenable(seq)) as unknown as JournalStore['append'])
    const journal = new Journal(runIdAt(1), store, nothing, undefined)
    for (let count = 0; count < 3; count += 1) journal.write(scriptGenerated())
    await journal.settle()
    expect(kept).toEqual([0, 1, 2])
  })
})

describe('secrets in a journal (OR-06)', () => {
  const SECRET = 'sk-live/ä+42=='
  const MARK = '[redacted:KEY]'
  const redactor = new Redactor({ KEY: SECRET })
  const written = (...bodies: readonly JournalBody[]): readonly JournalEvent[] => {
    const journal = new Journal(runIdAt(1), memoryStore(), redactor, undefined)
    for (const body of bodies) journal.write(body)
    return journal.events
  }
  const place = { step: 1, attempt: 1 }
  const error = { code: SECRET, message: `no ${SECRET}` }
  const violation = { code: 'unknown_name', line: 1, column: 0, message: SECRET, hint: SECRET }
  const all: readonly JournalBody[] = [
    runStarted({ task: SECRET, trace_id: SECRET }),
    { type: 'prompt_written', ...place, digest: 'd', chars: 1, text: `Say ${SECRET}` },
    scriptGenerated({ model: SECRET, script: `x = ${JSON.stringify(SECRET)}`, answer: SECRET }),
    { type: 'script_checked', ...place, policy: 'strict', ok: false, violations: [violation], ms: 1 },
    { type: 'tool_called', ...place, key: 'L1#1', line: 1, name: 'price', effect: null, args: { [SECRET]: [SECRET] } },
    toolAnswered({ ...place, ok: false, result_json: JSON.stringify({ a: SECRET }), error }),
    { type: 'intermediate', ...place, label: SECRET, data: { [SECRET]: { deep: [SECRET] } } },
    { type: 'log', ...place, level: SECRET, message: Buffer.from(`user:${SECRET}`).toString('base64') },
    scriptExecuted({
      error: encodeURIComponent(SECRET),
      traceback: `Traceback ${SECRET}`,
      final_data: { [`<${SECRET}>`]: SECRET },
      stdout: SECRET,
      stderr: SECRET,
      warnings: [{ code: 'c', message: SECRET }],
    }),
    attemptEnded({ error: SECRET }),
    { type: 'step_ended', step: 1, ok: false, error: SECRET },
    runEnded({ error: SECRET, final_data: [SECRET], partial: { [SECRET]: SECRET } }),
  ]

  test('appear in no field and no key', () => {
    const events = written(...all)
    const text = JSON.stringify(events)
    for (const form of [
      SECRET,
      encodeURIComponent(SECRET),
      Buffer.from(`user:${SECRET}`).toString('base64').slice(7, -3),
    ]) {
      expect(JSON.stringify(all)).toContain(form)
      expect(text).not.toContain(form)
    }
    expect(events.slice(-1)).toMatchObject([{ error: MARK, final_data: [MARK], partial: { [MARK]: MARK } }])
    expect(events[8]).toMatchObject({ final_data: { [`<${MARK}>`]: MARK }, traceback: `Traceback ${MARK}` })
  })

  test('that equal field names or types of the journal do not make it unreadable', () => {
    const place2 = { step: null, attempt: 1 }
    const bodies: readonly JournalBody[] = [
      runStarted({ budget: { tokens: 1, tool_calls: null, wall_ms: null }, tools_digest: 'digest' }),
      { type: 'step_started', step: 1, force_finish: false },
      { type: 'prompt_written', ...place2, digest: 'digest', chars: 1, text: null },
      scriptGenerated({ script: null, model: null }),
      { type: 'script_checked', ...place2, policy: 'strict', ok: false, violations: [violation], ms: 1 },
      { type: 'sandbox_assigned', ...place2, sandbox_id: 'sandbox', engine: 'local' },
      { type: 'tool_called', ...place2, key: 'L1#1', line: 1, name: 'price', effect: 'read', args: null },
      toolAnswered({ ...place2, result_json: null, result_chars: 0 }),
      scriptExecuted({ error_kind: 'exception', warnings: [{ code: 'output_cut', message: '' }] }),
      { type: 'stagnation_found', ...place2, repetition: 'same-error' },
      attemptEnded({ repetition: 'cycle' }),
      runEnded(),
    ]
    const own = bodies.map((body) => ({ ...body, ...('violations' in body ? { violations: [] } : {}) }))
    const words = own.flatMap((body) => JSON.stringify(body).match(/[A-Za-z0-9#_.-]{4,}/g) ?? [])
    const common = new Redactor(Object.fromEntries(words.map((word) => [`<${word}>`, word])))
    const journal = new Journal(runIdAt(1), memoryStore(), common, undefined)
    // User text is redacted even if it equals such a name.
    for (const body of own) journal.write({ ...body, ...('task' in body ? { task: '', trace_id: null } : {}) })
    expect(journal.events).toMatchObject(
      own.map((body) => ('task' in body ? { ...body, task: '', trace_id: null } : body)),
    )
    expect(words).toContain('limits_enforced')
  })

  test('that equal such names are hidden in text of a script', () => {
    const common = new Redactor({ A: 'default', B: 'completed', C: 'unknown_name' })
    const journal = new Journal(runIdAt(1), memoryStore(), common, undefined)
    const message = 'no default is completed'
    journal.write(runStarted({ task: message }))
    journal.write({
      type: 'script_checked',
      ...place,
      policy: 'strict',
      ok: false,
      violations: [{ ...violation, message }],
      ms: 1,
    })
    journal.write(scriptExecuted({ stdout: message, warnings: [{ code: 'unknown_name', message }] }))
    const hidden = 'no [redacted:A] is [redacted:B]'
    expect(journal.events).toMatchObject([
      { task: hidden, sandbox_name: 'default' },
      { violations: [{ code: 'unknown_name', message: hidden }] },
      { status: 'completed', stdout: hidden, warnings: [{ code: 'unknown_name', message: hidden }] },
    ])
  })

  test('in two keys of one object keep both members', () => {
    const two = { [SECRET]: 1, [encodeURIComponent(SECRET)]: 2, [MARK]: 3, other: { [`${SECRET}#2`]: 4 } }
    const [event] = written({ type: 'intermediate', ...place, label: 'l', data: two }).slice(-1)
    expect(event).toMatchObject({
      data: { [MARK]: 3, [`${MARK}#2`]: 1, [`${MARK}#3`]: 2, other: { [`${MARK}#2`]: 4 } },
    })
  })
})

test('the id of a run contains its start time, and sorts by it', () => {
  const now = new Date('2026-03-04T05:06:07.089Z')
  const id = newRunId(now)
  expect(id).toMatch(/^20260304T050607089-[0-9a-f]{8}$/)
  expect(startOfRunId(id)).toBe(now.toISOString())
  expect(startOfRunId('../x')).toBe(undefined)
  expect(newRunId(new Date(now.getTime() + 1)) > id).toBe(true)
})
