import { expect, test } from 'vitest'
import type { AcceptanceCase } from './driver/case.ts'
import { makeFixtures } from './driver/fixtures.ts'
import { runCase } from './driver/run-case.ts'
import type { Ground } from './driver/stage.ts'
import { openEngine } from './engines/local.ts'

/* The driver of the cases: what it does not understand must fail, not pass. None of this starts a sandbox. */

const GIVEN: AcceptanceCase = {
  id: 'XYZ-001',
  group: 'protocol',
  title: 'an invented case',
  kind: 'wire_events',
  mode: 'PLAN',
  script_or_input: [{ type: 'final_result', execution_id: '@@EXECUTION_ID@@', data: 1 }],
  expected: 'the result',
  check: { success: true, final_data_equals: 1 },
}

async function outcomeOf(changes: Partial<AcceptanceCase>, { run }: Partial<Ground['shared']> = {}): Promise<string> {
  const engine = openEngine()
  await using fixtures = await makeFixtures(engine)
  const shared: Ground['shared'] = {
    run: run ?? (() => Promise.reject(new Error('no'))),
    close: () => Promise.resolve(),
  }
  try {
    const { evaluated } = await runCase({ ...GIVEN, ...changes }, { engine, fixtures, shared }, undefined)
    return evaluated.join(' ')
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    await engine.close()
  }
}

test('a case passes when every key was evaluated', async () => {
  expect(await outcomeOf({})).toBe('success final_data_equals')
})

test.each<[string, Partial<AcceptanceCase>, RegExp]>([
  ['a key that does not hold', { check: { success: false } }, /wanted success false/],
  [
    'a key that nobody knows',
    { check: { success: true, nonsense: 1 } },
    /unknown key nonsense[^]*nobody evaluated nonsense/,
  ],
  [
    'an invariant that nobody knows',
    { check: { host: ['nonsense'] } },
    /unknown invariant nonsense[^]*nobody evaluated host.nonsense/,
  ],
  [
    'an invariant that was not looked at',
    { check: { host: ['no_leaked_processes'] } },
    /nobody evaluated host.no_leaked_processes/,
  ],
  ['nothing to assert', { check: {} }, /nobody evaluated assertion/],
  ['a setup that nobody makes', { setup: 'the moon is full' }, /nobody sets up: the moon is full/],
  ['a kind that nobody runs', { kind: 'moon_ops' }, /nobody evaluated success/],
  [
    'a key of its follow-up that nobody knows',
    { followup: { script: '', check: { moon: 1 } } },
    /nobody evaluates the key moon/,
  ],
  ['a placeholder that nothing stands for', { script_or_input: ['@@MOON@@'] }, /no fixture stands for @@MOON@@/],
])('a case fails by %s', async (_why, changes, message) => {
  expect(await outcomeOf(changes)).toMatch(message)
})

/** A case of the checker on a runner that answers alike whatever the policy, or rejects what is checked. */
async function checkedOutcome(rejects: boolean, check: AcceptanceCase['check']): Promise<string> {
  const result = { status: 'completed', success: true, errorKind: null, finalData: { pwned: true }, error: null }
  const violations = [{ code: 'forbidden', line: 1, column: 0, message: 'eval is not allowed', hint: '' }]
  const rejected = { ...result, status: 'rejected', success: false, finalData: null, violations }
  const run: Ground['shared']['run'] = (_script, { policy }) =>
    Promise.resolve({
      result: (policy !== undefined && rejects ? rejected : result) as never,
      thrown: null,
      errorKind: null,
      wallMs: 1,
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
  ['what nobody knows', true, { static: 'perhaps' }, /static: nobody knows perhaps/],
])('the key static: %s', async (_what, rejects, check, message) => {
  expect(await checkedOutcome(rejects, check)).toMatch(message)
})
