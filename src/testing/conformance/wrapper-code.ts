import assert from 'node:assert/strict'
import type { CheckFrame, ToolSignature } from '../../protocol/index.ts'
import type { Fixture } from './fixture.ts'
import { endingByExit, type HarnessPeer, python } from './peer.ts'

const PREAMBLE = 'import math as m\n\ndef twice(x):\n    return x * 2\n'

/** Tests wrapper code that a host runs before and after a script, and the line of the script that each tool call names. */
export function registerWrapperCodeTests(at: Fixture): void {
  at.test('imports and helpers of a preamble are globals of the script', ['harness'], () =>
    at.withAny(async (peer) => {
      const { result } = await peer.run('emit_result([twice(4), m.floor(2.5)])', { preamble: PREAMBLE })
      assert.deepEqual(result, [8, 2])
    }),
  )

  at.test('a traceback has the script’s own line numbers, also with wrapper code', ['harness'], () =>
    at.withAny(async (peer) => {
      const { events } = await peer.run('x = 1\n1/0\n', { preamble: PREAMBLE, postamble: "emit_log('behind')" })
      assert.deepEqual(
        events.map(({ type, kind }) => [type, kind]),
        [['error', 'exception']],
      )
      assert.match(String(events[0]?.['traceback']), /^Traceback.*\n {2}File "<script>", line 2, in <module>\n/)
      const syntax = await peer.run('x = (\n', { preamble: PREAMBLE })
      assert.deepEqual(
        syntax.events.map(({ type, kind }) => [type, kind]),
        [['error', 'syntax']],
      )
    }),
  )

  at.test('an error in a preamble or a postamble names it, with the line', ['harness'], () =>
    at.withAny(async (peer) => {
      const first = await peer.run("emit_log('ran')", { preamble: 'x = 1\n1/0\n' })
      assert.deepEqual(
        first.events.map(({ type }) => type),
        ['error'],
      )
      assert.match(String(first.events[0]?.['traceback']), /File "<preamble>", line 2, in <module>\n {4}1\/0\n/)
      const last = await peer.run("emit_log('ran')", { postamble: '\n\n1/0\n' })
      assert.deepEqual(
        last.events.map(({ type }) => type),
        ['log', 'error'],
      )
      assert.match(String(last.events[1]?.['traceback']), /File "<postamble>", line 3, in <module>\n {4}1\/0\n/)
      assert.equal(last.done.reusable, true)
    }),
  )

  at.test('a preamble that ends the process is told apart from a script that does', ['harness', 'broker'], () =>
    at.withAny(async (peer) => {
      const exit = 'import os\nos._exit(7)'
      for (const [script, preamble, inSetup] of [
        ["emit_log('ran')", exit, true],
        [exit, PREAMBLE, undefined],
      ] as const) {
        const { events, done } = await peer.run(script, { preamble })
        assert.deepEqual([events.map(({ type, kind }) => [type, kind]), done.in_setup], [[['error', 'crash']], inSetup])
      }
    }),
  )

  at.test(
    'a flood of a preamble or a Python tool is told apart from one of the script',
    ['harness', 'broker', 'webassembly'],
    () =>
      at.with({}, async (peer) => {
        const byText = 'while True: print("x" * 1000)'
        const byFrames = 'while True: emit_log("x" * 100)'
        for (const flood of [byText, byFrames]) {
          const tool = { name: 'loud', source: `${flood}\ndef loud(): pass`, stub: '' }
          const rows: readonly [script: string, wrapper: Parameters<HarnessPeer['request']>[1], inSetup?: true][] = [
            ["emit_log('ran')", { preamble: flood }, true],
            ["emit_log('ran')", { tool_sources: [tool] }, true],
            [flood, { preamble: PREAMBLE }],
          ]
          for (const [script, wrapper, inSetup] of rows) {
            const { events, done } = await peer.run(script, { max_output_bytes: 4096, ...wrapper })
            assert.deepEqual([events.at(-1)?.['kind'], done.in_setup], ['output_limit', inSetup], flood)
          }
        }
      }),
  )

  at.test('a postamble runs after a script that ended without an error, and only then', ['harness'], () =>
    at.withAny(async (peer) => {
      const postamble = 'emit_result(x)'
      assert.equal((await peer.run('x = 5', { postamble })).result, 5)
      for (const script of ['x = 1\n1/0', 'x = 1\nimport sys\nsys.exit()']) {
        const { events } = await peer.run(script, { postamble })
        assert.deepEqual(
          events.map(({ type }) => type),
          ['error'],
        )
      }
    }),
  )

  at.test('wrapper code leaves nothing for the next run', ['harness'], () =>
    at.withAny(async (peer) => {
      await peer.run('emit_result(twice(1))', { preamble: PREAMBLE, postamble: 'left = 1' })
      const script = python`
        import linecache
        there = [name for name in ("twice", "m", "left") if name in globals()]
        emit_result([there, [text for text in ("<preamble>", "<postamble>") if text in linecache.cache]])
      `
      assert.deepEqual((await peer.run(script)).result, [[], []])
    }),
  )

  for (const checker of [true, false]) {
    at.test(
      `a check knows what a preamble binds and a postamble emits${checker ? ', in a sandbox for checks' : ''}`,
      ['harness'],
      () =>
        at.with({ checker }, async (peer) => {
          const script = 'answer = twice(m.floor(2.5))\nanser'
          const wrapper = { preamble: PREAMBLE, postamble: 'emit_result(answer)' }
          assert.deepEqual(await codesOf(peer, script, wrapper), [['unknown_name', 2]])
          assert.deepEqual(await codesOf(peer, 'answer = twice(1)', wrapper), [])
          assert.deepEqual(await codesOf(peer, 'answer = 1', { preamble: PREAMBLE }), [['no_result', 1]])
          assert.deepEqual(await codesOf(peer, 'emit_result(twice(1))', {}), [['unknown_name', 1]])
        }),
    )
  }

  at.test('a check knows the names of a star import, and reports a preamble that is not Python', ['harness'], () =>
    at.withAny(async (peer) => {
      const star = { preamble: 'from math import *\n' }
      assert.deepEqual(await codesOf(peer, 'emit_result(sqrt(4))', star), [])
      assert.deepEqual(await codesOf(peer, 'emit_result(sqrtt(4))', star), [['unknown_name', 1]])
      const unknown = { preamble: 'try:\n    from somewhere import *\nexcept ImportError:\n    pass\n' }
      assert.deepEqual(await codesOf(peer, 'emit_result(sqrtt(4))', unknown), [])
      for (const wrapper of [{ preamble: 'x = (' }, { postamble: 'x = (' }]) {
        assert.deepEqual(await codesOf(peer, 'nope', wrapper), [['preamble_error', 1]])
      }
    }),
  )

  at.test('a tool call names the line of the script that made it, also through a helper', ['harness'], () =>
    at.withAny(async (peer) => {
      const script = python`
        import asyncio
        lookup("a")
        def ask(x):
            return lookup(x)
        ask("b")
        helped("c")
        async def main():
            await asyncio.gather(
                lookup("d"), lookup("e"))
        asyncio.run(main())
      `
      const preamble = 'def helped(x):\n    return lookup(x)\n'
      assert.deepEqual(await linesOf(peer, script.trimStart(), preamble), [
        ['a', 2],
        ['b', 4],
        ['c', 6],
        ['d', 9],
        ['e', 9],
      ])
    }),
  )

  at.test(
    'a tool call of a thread names its line if a line of the script made it',
    ['harness'],
    () =>
      at.withAny(async (peer) => {
        const script = python`
          from concurrent.futures import ThreadPoolExecutor
          def ask(x):
              return lookup(x)
          with ThreadPoolExecutor(1) as pool:
              list(pool.map(ask, ["a"]))
              list(pool.map(lookup, ["b"]))
        `
        assert.deepEqual(await linesOf(peer, script.trimStart(), ''), [
          ['a', 3],
          ['b', null],
        ])
      }),
    (report) => (report.capabilities.threads ? undefined : 'no threads'),
  )
}

const LOOKUP: ToolSignature = {
  name: 'lookup',
  params: [{ name: 'x', type: 'str', required: true, nullable: false }],
  more: false,
  returns: 'str',
  doc: '',
  types: '',
}

/** The argument of each call, and the line that it names. */
async function linesOf(peer: HarnessPeer, script: string, preamble: string): Promise<unknown[]> {
  const request = peer.request(script, { tools: [LOOKUP], preamble })
  const { execution_id } = request
  const lines: unknown[] = []
  await peer.send(request)
  const { done } = await peer.finish(execution_id, async ({ id, args, line = null }) => {
    lines.push([args['x'], line])
    await peer.send({ type: 'tool_result', execution_id, id, result: 'found' })
  })
  assert.deepEqual(done.ending, endingByExit())
  return lines
}

async function codesOf(
  peer: HarnessPeer,
  script: string,
  wrapper: Pick<CheckFrame, 'preamble' | 'postamble'>,
): Promise<unknown[]> {
  const { execution_id } = peer.request(script)
  await peer.send({
    type: 'check',
    execution_id,
    script,
    mode: 'plan',
    policy: 'standard',
    timeout_sec: 20,
    names: [],
    allow_modules: [],
    tools: [],
    ...wrapper,
  })
  const { events } = await peer.finish(execution_id)
  const violations = events[0]?.['violations'] as readonly { readonly code: string; readonly line: number }[]
  return violations.map(({ code, line }) => [code, line])
}
