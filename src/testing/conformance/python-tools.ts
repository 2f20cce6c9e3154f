import assert from 'node:assert/strict'
import { CAPS, type PythonToolSource, type ToolSignature } from '../../protocol/index.ts'
import type { Fixture } from './fixture.ts'
import { withFiles } from './imports.ts'
import { python } from './peer.ts'

/** Tests tools that a run brings along as Python source. */
export function registerPythonToolTests(at: Fixture): void {
  at.test(
    'a Python tool is a global of the script that brought it, an async one too, in a module of its own',
    ['harness'],
    () =>
      at.withAny(async (peer) => {
        const script = python`
          import asyncio
          async def main():
              return await asyncio.gather(fetch(1), fetch(2))
          emit_result([count("a", step=2), fetch(3), asyncio.run(main()), "STEPS" in globals(),
                       describe_tool("count"), describe_tool(fetch)])
        `
        const { result, done } = await peer.run(script, { tool_sources: [COUNT, FETCH] })
        assert.deepEqual(result, [['a', 2], 6, [2, 4], false, COUNT.stub, FETCH.stub])
        assert.equal(done.reusable, true)
      }),
    (report) => (report.capabilities.threads ? undefined : 'no threads'),
  )

  at.test('nothing of a Python tool is there in the next run: neither it nor what its module held', ['harness'], () =>
    at.withAny(async (peer) => {
      const script = 'emit_result([count("a"), count("b")])'
      const [once, twice] = [
        ['a', 1],
        ['a', 1, 'b', 1],
      ]
      const first = await peer.run('emit_result(list(count("a")))', { tool_sources: [COUNT] })
      const second = await peer.run(script, { tool_sources: [COUNT] })
      const third = await peer.run(
        'import sys\nemit_result([name for name in ("count", "describe_tool") if name in globals()] + ' +
          '[name for name in sys.modules if "count" in name])',
      )
      assert.deepEqual([first.result, second.result, third.result], [once, [twice, twice], []])
    }),
  )

  at.test('a Python tool that cannot be loaded is the error of the run, with its name and line', ['harness'], () =>
    at.withAny(async (peer) => {
      const broken = { name: 'broken', source: 'def broken(): pass\n\nbroken.x = 1 / 0\n', stub: '' }
      const { events, done } = await peer.run('emit_log("ran")', { tool_sources: [COUNT, broken] })
      const message =
        'the Python tool broken could not be loaded: ZeroDivisionError: division by zero (<tool broken>, line 3)'
      assert.deepEqual(
        [events.map(({ type, kind, message }) => [type, kind, message]), done.reusable],
        [[['error', 'setup', message]], true],
      )
      const [{ traceback } = {}] = events
      assert.match(String(traceback), /File "<tool broken>", line 3, in <module>\n {4}broken\.x = 1 \/ 0\n/)
    }),
  )

  at.test('a traceback shows the script and its tools, and no frame of the harness', ['harness'], () =>
    at.withAny(async (peer) => {
      const fetch = { name: 'fetch', source: 'async def fetch(row):\n    return row["id"]\n', stub: '' }
      const script = python`
        try:
            fetch({})
        except KeyError:
            try:
                emit_result([{"a": {1, 2j}}])
            except TypeError:
                raise ValueError("last")
      `
      const { events } = await peer.run(script, { tool_sources: [fetch] })
      assert.deepEqual(
        String(events[0]?.['traceback'])
          .split('\n')
          .filter((line) => /^(?: *File|\S)/.test(line)),
        [
          'Traceback (most recent call last):',
          '  File "<script>", line 3, in <module>',
          '  File "<tool fetch>", line 2, in fetch',
          "KeyError: 'id'",
          'During handling of the above exception, another exception occurred:',
          'Traceback (most recent call last):',
          '  File "<script>", line 6, in <module>',
          'ConversionError: $[0].a[1]: a value of type complex cannot be sent as JSON; convert it first',
          'During handling of the above exception, another exception occurred:',
          'Traceback (most recent call last):',
          '  File "<script>", line 8, in <module>',
          'ValueError: last',
        ],
      )
    }),
  )

  at.test(
    'a name that a run brings and that a function of the tools directory has is refused',
    ['harness'],
    () =>
      withFiles({ 'shared.py': 'def known(): return "of the directory"\n' }, (toolsDir) =>
        at.with({ toolsDir }, async (peer) => {
          const tool = { name: 'known', source: 'def known(): return "mine"', stub: '' }
          const error = (kind: string): object => ({
            type: 'error',
            message: `known is both ${kind} of this run and a function of the tools directory; rename one of them`,
            traceback: null,
            kind: 'setup',
          })
          const ofPython = await peer.run('emit_log("ran")', { tool_sources: [tool] })
          const host = await peer.run('emit_log("ran")', { tools: [HOST_TOOL] })
          const input = await peer.run('emit_log("ran")', { inputs: { known: 1 } })
          assert.deepEqual(
            [ofPython, host, input].map(({ events }) => events),
            [[error('a Python tool')], [error('a tool of the host')], [error('an input')]],
          )
          assert.equal((await peer.run('emit_result(known())')).result, 'of the directory')
        }),
      ),
    ({ capabilities }) => (capabilities.toolsDir ? undefined : 'it takes no tools directory'),
  )

  at.test('a source that is larger than any may be is refused before anything runs', ['broker'], () =>
    at.withAny(async (peer) => {
      const large = { ...COUNT, source: `${COUNT.source}#${'x'.repeat(CAPS.toolSourceBytes)}` }
      const { events, done } = await peer.run('emit_log("ran")', { tool_sources: [large] })
      assert.deepEqual(
        [events.map(({ type, kind }) => [type, kind]), done.ending?.cause, done.reusable],
        [[['error', 'request']], 'not-started', true],
      )
      assert.match(
        String(events[0]?.['message']),
        /^the source of the Python tool count has \d+ bytes; at most 1048576 are allowed$/,
      )
    }),
  )

  at.test('a Python tool reads the secrets of its run, as the script beside it does', ['harness'], () =>
    at.withAny(async (peer) => {
      const source = 'import os\nTOKEN = os.environ["TOKEN"]\ndef token(): return TOKEN\n'
      const options = { tool_sources: [{ name: 'token', source, stub: '' }], required_secrets: ['TOKEN'] }
      const script = 'import os\nemit_result([token() == os.environ["TOKEN"], len(token())])'
      const with_ = await peer.run(script, { ...options, secrets: { TOKEN: 'value-of-the-token' } })
      assert.deepEqual(with_.result, [true, 18])
      const without = await peer.run(script, options)
      assert.deepEqual(
        without.events.map(({ kind, message }) => [kind, message]),
        [['secrets', 'required secrets are missing: TOKEN']],
      )
    }),
  )
}

const COUNT: PythonToolSource = {
  name: 'count',
  source: 'STEPS = []\ndef count(name, *, step=1):\n    STEPS.extend([name, step])\n    return STEPS\n',
  stub: 'def count(name, *, step=1):\n    """\n    Counts.\n    """',
}
const FETCH: PythonToolSource = {
  name: 'fetch',
  source: 'import asyncio\nasync def fetch(n):\n    await asyncio.sleep(0)\n    return n * 2\n',
  stub: 'def fetch(n):\n    """\n    Fetches.\n    """',
}
const HOST_TOOL: ToolSignature = { name: 'known', params: [], more: false, returns: 'Any', doc: '', types: '' }
