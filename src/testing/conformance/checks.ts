import assert from 'node:assert/strict'
import type { CheckFrame } from '../../protocol/index.ts'
import type { Fixture } from './fixture.ts'
import { endingByExit, type HarnessPeer, python, timeless } from './peer.ts'

/** Tests checks of scripts, which run nothing. */
export function registerCheckTests(at: Fixture): void {
  for (const checker of [true, false]) {
    at.test(`a check finds mistakes and runs nothing${checker ? ', in a sandbox made for it' : ''}`, ['broker'], () =>
      at.with({ checker }, async (peer) => {
        const script = python`
          import os
          os.mkdir("made")
          emit_log("ran")
          emit_resutl(1)
        `
        const { violations, done } = await check(peer, script)
        assert.deepEqual(
          violations.map(({ code, line, column }) => [code, line, column]),
          [['unknown_name', 5, 0]],
        )
        assert.match(violations[0]?.hint ?? '', /emit_result/)
        assert.deepEqual([done.ending, done.reusable], [endingByExit(), true])
        assert.deepEqual((await check(peer, 'emit_result(1)')).violations, [])
        const look = await peer.run("import os\nemit_result(os.listdir('.'))")
        if (!checker) return assert.deepEqual(look.result, [])
        const [refused, ...others] = look.events
        assert.deepEqual(
          [refused?.['type'], refused?.['kind'], others, look.done.reusable],
          ['error', 'request', [], true],
        )
        assert.match(String(refused?.['message']), /only checks scripts/)
      }),
    )
  }

  at.test('a check tells which tools a script may call, also without a policy, if it is asked', ['harness'], () =>
    at.with({ checker: true }, async (peer) => {
      for (const policy of ['off', 'standard'] as const) {
        assert.deepEqual(await toolsNamedIn(peer, 'emit_result(look())', policy), ['look'])
        assert.deepEqual(await toolsNamedIn(peer, 'globals()["p" + "ay"]()', policy), ['pay', 'look'])
      }
      assert.equal((await check(peer, 'emit_result(1)')).tools, undefined)
    }),
  )

  at.test('a check of an answer treats all of it as the script if it is Python that does something', ['harness'], () =>
    at.with({ checker: true }, async (peer) => {
      const rows = [
        ['1/0\nemit_resutl(1)', true, [2]],
        ['This is it:\n\nemit_resutl(1)', false, [1]],
        ['Total: 5', false, [1]],
      ] as const
      for (const [whole, isWhole, lines] of rows) {
        const found = await check(peer, 'emit_resutl(1)', { whole })
        assert.deepEqual([found.whole, found.violations.map(({ line }) => line)], [isWhole, lines], whole)
      }
      const asked = await check(peer, 'emit_resutl(1)', { whole: 'emit_resutl(2)', policy: 'off' })
      assert.deepEqual([asked.whole, asked.violations], [true, []])
    }),
  )

  at.test('a check says everything that it is asked for at once', ['broker'], () =>
    at.with({ checker: true }, async (peer) => {
      const more = { whole: 'emit_resutl(look())', list_tools: true, policy: 'off', tools: TOOLS } as const
      const { whole, tools, violations } = await check(peer, 'emit_result(pay())', more)
      assert.deepEqual([whole, tools, violations], [true, ['look'], []])
    }),
  )

  for (const checks of [6, 250]) {
    at.test(
      `a check knows nothing of the ${checks - 1} before it`,
      ['harness'],
      () =>
        at.with({ checker: true }, async (peer) => {
          for (let n = 0; n < checks; n += 1) {
            const { violations, done } = await check(peer, n % 2 === 0 ? 'known = 1' : 'print(known)')
            const codes = violations.map(({ code }) => code)
            assert.deepEqual(
              [codes, done.ending, done.reusable],
              [n % 2 === 0 ? [] : ['unknown_name'], endingByExit(), true],
            )
          }
        }),
      ({ capabilities: { processes } }) =>
        processes || checks < 100 ? undefined : 'each of its checks has a process of its own, which takes time',
    )
  }

  at.test('a check that runs out of time ends as a timeout, and the next has all of its own', ['broker'], () =>
    at.with({ checker: true }, async (peer) => {
      const { execution_id } = peer.request('')
      await peer.send(checkOf(execution_id, 'x = [y for y in range(3)]\n'.repeat(100_000), { timeout_sec: 0.05 }))
      const { events, done } = await peer.finish(execution_id)
      assert.deepEqual(
        events.map(({ type, kind }) => [type, kind]),
        [['error', 'timeout']],
      )
      assert.deepEqual([done.ending?.cause, done.reusable], ['timeout', true])
      assert.deepEqual((await check(peer, 'x = 1')).violations, [])
    }),
  )

  at.test(
    'a script that is not Python, or too deep to parse, is a violation and costs no sandbox',
    ['harness', 'webassembly'],
    () =>
      at.with({ checker: true }, async (peer) => {
        for (const script of [
          'emit_result(1',
          'a\0b',
          `${'('.repeat(5000)}1${')'.repeat(5000)}`,
          '\uFEFF\uFEFFx = 1',
        ]) {
          const { violations, done } = await check(peer, script)
          assert.deepEqual(
            [violations.map(({ code }) => code), done.reusable],
            [['syntax_error'], true],
            script.slice(0, 20),
          )
        }
        assert.deepEqual((await check(peer, 'x = 1')).violations, [])
      }),
  )
}

const TOOLS: CheckFrame['tools'] = ['pay', 'look'].map((name) => {
  const signature = { name, params: [], more: false, returns: 'Any' }
  return { ...signature, doc: '', types: '', schemas: {}, result: true }
})

async function toolsNamedIn(peer: HarnessPeer, script: string, policy: CheckFrame['policy']): Promise<unknown> {
  return (await check(peer, script, { list_tools: true, policy, tools: TOOLS })).tools
}

async function check(
  peer: HarnessPeer,
  script: string,
  options: Partial<CheckFrame> = {},
): Promise<{
  whole: unknown
  tools: unknown
  violations: readonly { code: string; line: number; column: number; hint: string }[]
  done: ReturnType<typeof timeless>
}> {
  const { execution_id } = peer.request(script)
  await peer.send(checkOf(execution_id, script, options))
  const { events, done } = await peer.finish(execution_id)
  const [event, ...others] = events
  assert.deepEqual([event?.['type'], others], ['check_result', []], JSON.stringify(events).slice(0, 500))
  return {
    whole: event?.['whole'],
    tools: event?.['tools'],
    violations: event?.['violations'] as never,
    done: timeless(done),
  }
}

function checkOf(execution_id: string, script: string, options: Partial<CheckFrame> = {}): CheckFrame {
  return {
    type: 'check',
    execution_id,
    script,
    mode: 'interactive',
    policy: 'standard',
    timeout_sec: 20,
    names: [],
    allow_modules: [],
    tools: [],
    ...options,
  }
}
