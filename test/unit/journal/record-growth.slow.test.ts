import { expect, test } from 'vitest'
import { type JournalEvent, recordOf } from '../../../src/journal/index.ts'

const PLACE = { step: null, attempt: 1 }
const BUDGET = { tokens: null, tool_calls: null, wall_ms: null }
const STARTED = {
  type: 'run_started',
  task: 't',
  mode: 'plan',
  sandbox_name: '',
  policy: 'off',
  trace_id: null,
  tools: [],
  tools_digest: null,
  max_retries: 0,
  max_steps: null,
  budget: BUDGET,
}
const CALLED = { type: 'tool_called', ...PLACE, line: 1, name: 't', effect: null, args: null }
const ANSWER = { ok: true, ms: 1, result_json: null, result_chars: 0, error: null }
const ANSWERED = { type: 'tool_answered', ...PLACE, key: 'L2#1', name: 't', ...ANSWER }
const SANDBOX = { engine: '', level: '', python: '', limits_enforced: [], network: '' }
const SCRIPT = { plan: '', script: '', sha256: '', dependencies: [], tools: [], sandbox: SANDBOX, problem: null }
const PROPOSED = { type: 'script_proposed', ...PLACE, ...SCRIPT }
const DECISION = { decision: 'approve', by: null, text: null, script: null, waited_ms: 1 }
const DECIDED = { type: 'proposal_decided', ...PLACE, proposal_id: 'none', ...DECISION }
const LOGGED = { type: 'log', level: 'info', message: '' }

/** Bodies of stored events, by their number: what a file may hold, whoever wrote it. */
const HOSTILE: readonly [string, (n: number) => object][] = [
  ['steps', (n) => ({ type: 'step_started', step: n, force_finish: false })],
  ['attempts', (n) => ({ ...LOGGED, step: null, attempt: n })],
  ['attempts of steps', (n) => ({ ...LOGGED, step: n, attempt: n })],
  ['answers to calls that nobody made', (n) => (n % 2 === 0 ? { ...CALLED, key: `L1#${n}` } : ANSWERED)],
  ['decisions on scripts that nobody proposed', (n) => (n % 2 === 0 ? { ...PROPOSED, proposal_id: `p${n}` } : DECIDED)],
]

test.each(HOSTILE)('a journal of 100,000 %s becomes a record in linear time', (_, body) => {
  const at = '2026-01-01T00:00:00.000Z'
  const events = Array.from({ length: 100_000 }, (__, n) => {
    return { v: 1, run_id: 'r', seq: n, at, ...(n === 0 ? STARTED : body(n)) }
  }) as JournalEvent[]
  const before = process.cpuUsage()
  expect(recordOf(events).status).toBe('unfinished')
  const { user } = process.cpuUsage(before)
  expect(user / 1000).toBeLessThan(1500) // each took 12 s or more where lists were searched
})
