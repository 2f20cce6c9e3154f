import { afterEach, expect, test, vi } from 'vitest'
import { TASK_OUTCOMES } from '../../../src/outcomes/index.ts'
import { truncateToWidth } from '../../../src/cli/live-line.ts'
import { SolveProgress } from '../../../src/cli/solve-progress.ts'
import type { JournalBody } from '../../../src/journal/index.ts'
import { maskTimesAndIds } from './solve-command.ts'

afterEach(() => void vi.useRealTimers())

test('each outcome of a run has its exit code', () => {
  const statuses = [
    'completed',
    'retries-spent',
    'steps-spent',
    'stagnated',
    'budget-spent',
    'model-failed',
    'infrastructure',
    'unfinished',
    'cancelled',
  ] as const
  expect(statuses.map((status) => TASK_OUTCOMES[status].exitCode)).toEqual([0, 1, 1, 1, 1, 7, 7, 7, 130])
})

test('the line on a terminal shows step, attempt and activity of the run', () => {
  const progress = new SolveProgress()
  const place = { step: null, attempt: 2 }
  const generated = { model: null, prompt_tokens: 1200, completion_tokens: 34, latency_ms: 1, answer_chars: 1 }
  const showAfter = (...bodies: readonly JournalBody[]): string => {
    for (const body of bodies) progress.take({ v: 1, run_id: '', seq: 0, at: '', ...body })
    return maskTimesAndIds(progress.text() ?? '')
  }
  const call = { ...place, key: 'L1#1', line: 1, name: 'search', effect: 'read', args: {} }
  expect([
    showAfter(),
    showAfter({ type: 'prompt_written', ...place, digest: '', chars: 1, text: null }),
    showAfter({ type: 'script_generated', ...place, ...generated, script: '1', script_digest: '', answer: null }),
    showAfter({ type: 'sandbox_assigned', ...place, sandbox_id: '', engine: '' }, { type: 'tool_called', ...call }),
    showAfter({ type: 'prompt_written', step: 3, attempt: 1, digest: '', chars: 1, text: null }),
  ]).toEqual([
    'starting: waiting for a sandbox · TIME · Ctrl-C cancels',
    'attempt 2: asking the model · TIME · Ctrl-C cancels',
    'attempt 2: checking the script · 1,234 tokens · TIME · Ctrl-C cancels',
    'attempt 2: running the script, 1 tool call so far · 1,234 tokens · TIME · Ctrl-C cancels',
    'step 3, attempt 1: asking the model · 1,234 tokens · TIME · Ctrl-C cancels',
  ])
})

test('the line on a terminal is shorter than the terminal', () => {
  expect([
    truncateToWidth('0123456789', 11),
    truncateToWidth('0123456789', 10),
    truncateToWidth('a\nb\u001B[2J', 80),
  ]).toEqual(['0123456789', '01234567…', 'a     b\\x1b[2J'])
  expect([undefined, 0, 1].map((columns) => truncateToWidth('x'.repeat(200), columns).length)).toEqual([79, 79, 1])
})

test('files that come out of a script are counted in the line, once that takes long, until it has ended', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const progress = new SolveProgress()
  const place = { step: null, attempt: 1 }
  const take = (body: JournalBody): void => progress.take({ v: 1, run_id: '', seq: 0, at: '', ...body })
  take({ type: 'sandbox_assigned', ...place, sandbox_id: '', engine: '' })
  progress.takeFile({ size: 3_000_000 })
  expect(progress.text()).toContain(': running the script ·')
  vi.advanceTimersByTime(500)
  progress.takeFile({ size: 500_000 })
  expect(progress.text()).toContain(': receiving files, 2 files with 3.5 MB so far ·')
  take({ type: 'sandbox_assigned', ...place, sandbox_id: '', engine: '' })
  expect(progress.text()).toContain(': running the script ·')
})
