import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AcceptanceCase } from '../../../campaigns/adversarial/driver/case.ts'
import { type Fixtures, makeFixtures } from '../../../campaigns/adversarial/driver/fixtures.ts'
import { runCase } from '../../../campaigns/adversarial/driver/run-case.ts'
import type { CaseContext } from '../../../campaigns/adversarial/driver/case-state.ts'
import { openEngine } from '../../../campaigns/adversarial/engines/local.ts'

/* The driver must fail a case that it does not understand. These tests start no sandbox. */

const GIVEN: AcceptanceCase = {
  id: 'XYZ-001',
  group: 'protocol',
  title: 'a case of this test',
  kind: 'wire_events',
  mode: 'PLAN',
  script_or_input: [{ type: 'final_result', execution_id: '@@EXECUTION_ID@@', data: 1 }],
  expected: 'the result',
  check: { success: true, final_data_equals: 1 },
}

const engine = openEngine()
let fixtures: Fixtures
beforeAll(async () => {
  fixtures = await makeFixtures(engine)
})
afterAll(async () => {
  await fixtures[Symbol.asyncDispose]()
  await engine.close()
})

async function outcomeOf(
  changes: Partial<AcceptanceCase>,
  { run }: Partial<CaseContext['shared']> = {},
): Promise<string> {
  const shared: CaseContext['shared'] = {
    run: run ?? (() => Promise.reject(new Error('no'))),
    close: () => Promise.resolve(),
  }
  try {
    const { evaluated } = await runCase({ ...GIVEN, ...changes }, { engine, fixtures, shared }, undefined)
    return evaluated.join(' ')
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

test('passes a case when every key was evaluated', async () => {
  expect(await outcomeOf({})).toBe('success final_data_equals')
})

test.each<[string, Partial<AcceptanceCase>, RegExp]>([
  ['a key with another value', { check: { success: false } }, /wanted success false/],
  ['an unknown key', { check: { success: true, nonsense: 1 } }, /unknown key nonsense[^]*not evaluated: nonsense/],
  [
    'an unknown invariant',
    { check: { host: ['nonsense'] } },
    /unknown invariant nonsense[^]*not evaluated: host.nonsense/,
  ],
  [
    'an invariant that was not checked',
    { check: { host: ['no_leaked_processes'] } },
    /not evaluated: host.no_leaked_processes/,
  ],
  ['no assertion', { check: {} }, /not evaluated: assertion/],
  ['an unknown setup', { setup: 'the moon is full' }, /SETUPS has no entry for the setup: the moon is full/],
  ['an unknown kind', { kind: 'moon_ops' }, /not evaluated: success/],
  [
    'an unknown key of its follow-up',
    { followup: { script: '', check: { moon: 1 } } },
    /no check exists for the key moon/,
  ],
  ['an unknown placeholder', { script_or_input: ['@@MOON@@'] }, /no fixture has the placeholder @@MOON@@/],
])('fails a case for %s', async (_why, changes, message) => {
  expect(await outcomeOf(changes)).toMatch(message)
})

/** A case of the checker on a runner that gives the same answer for every policy, or rejects checked scripts. */
async function checkedOutcome(rejects: boolean, check: AcceptanceCase['check']): Promise<string> {
  const result = { status: 'completed', success: true, errorKind: null, finalData: { pwned: true }, error: null }
  const violations = [{ code: 'forbidden', line: 1, column: 0, message: 'eval is not allowed', hint: '' }]
  const rejected = { ...result, status: 'rejected', success: false, finalData: null, violations }
  const run: CaseContext['shared']['run'] = (_script, { policy }) =>
    Promise.resolve({
      result: (policy !== undefined && rejects ? rejected : result) as never,
      thrown: null,
      errorKind: null,
      wallMs: 1,
      runMs: 1,
      afterResultMs: null,
      events: [],
    })
  return outcomeOf({ kind: 'python_script', script_or_input: 'eval("1")', check }, { run })
}

test.each<[string, boolean, AcceptanceCase['check'], RegExp]>([
  [
    'reject, and it is',
    true,
    { final_data_not: { pwned: true }, static: 'reject' },
    /^expected static final_data_not$/,
  ],
  ['reject, and it is not', false, { final_data_not: { pwned: true }, static: 'reject' }, /it was not rejected/],
  ['allow, and it is', false, { success: true, static: 'allow' }, /^success static$/],
  ['allow, and it is rejected', true, { success: true, static: 'allow' }, /policy standard: it was rejected/],
  ['any, and a key does not hold with the checker', false, { success: false, static: 'any' }, /wanted success false/],
  ['an unknown value', true, { static: 'perhaps' }, /static: unknown value perhaps/],
])('the key static: %s', async (_what, rejects, check, message) => {
  expect(await checkedOutcome(rejects, check)).toMatch(message)
})
