import assert from 'node:assert/strict'
import type { CheckFrame } from '../../protocol/index.ts'
import type { Bed } from './bed.ts'
import { exited, type HarnessPeer, python, timeless } from './peer.ts'

/** Scripts that are checked and not run. */
export function checkTests(at: Bed): void {
  for (const checker of [true, false]) {
    at.test(`a check finds mistakes and runs nothing${checker ? ', in a sandbox made for it' : ''}`, () =>
      at.with({ checker }, async (peer) => {
        const script = python`
          import os
          os.mkdir("made")
          emit_log("ran")
          emit_resutl(1)
        `
        const { violations, done } = await checked(peer, script)
        assert.deepEqual(
          violations.map(({ code, line, column }) => [code, line, column]),
          [['unknown_name', 5, 0]],
        )
        assert.match(violations[0]?.hint ?? '', /emit_result/)
        assert.deepEqual([done.ending, done.reusable], [exited(), true])
        assert.deepEqual((await checked(peer, 'emit_result(1)')).violations, [])
        assert.deepEqual((await peer.run("import os\nemit_result(os.listdir('.'))")).result, [])
      }),
    )
  }

  at.test('a script that is no Python, or too deep to be read, is a violation and costs no sandbox', () =>
    at.with({ checker: true }, async (peer) => {
      for (const script of ['emit_result(1', 'a\0b', `${'('.repeat(5000)}1${')'.repeat(5000)}`, '\uFEFF\uFEFFx = 1']) {
        const { violations, done } = await checked(peer, script)
        assert.deepEqual(
          [violations.map(({ code }) => code), done.reusable],
          [['syntax_error'], true],
          script.slice(0, 20),
        )
      }
      assert.deepEqual((await checked(peer, 'x = 1')).violations, [])
    }),
  )
}

async function checked(
  peer: HarnessPeer,
  script: string,
  options: Partial<CheckFrame> = {},
): Promise<{
  violations: readonly { code: string; line: number; column: number; hint: string }[]
  done: ReturnType<typeof timeless>
}> {
  const { execution_id } = peer.request(script)
  await peer.send({
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
  })
  const { events, done } = await peer.finish(execution_id)
  const [event, ...others] = events
  assert.deepEqual([event?.['type'], others], ['check_result', []], JSON.stringify(events).slice(0, 500))
  return { violations: event?.['violations'] as never, done: timeless(done) }
}
