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

async function outcomeOf(changes: Partial<AcceptanceCase>): Promise<string> {
  const engine = openEngine()
  await using fixtures = await makeFixtures(engine)
  const shared: Ground['shared'] = { run: () => Promise.reject(new Error('no')), close: () => Promise.resolve() }
  try {
    const { evaluated, deferred } = await runCase({ ...GIVEN, ...changes }, { engine, fixtures, shared }, undefined)
    return `${evaluated.join(' ')} | ${deferred.join(' ')}`
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    await engine.close()
  }
}

test('a case passes when every key was evaluated', async () => {
  expect(await outcomeOf({})).toBe('success final_data_equals | ')
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
  ['nothing but what waits', { check: { static: 'allow' } }, /nobody evaluated assertion/],
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
