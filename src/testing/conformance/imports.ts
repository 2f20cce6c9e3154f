import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ScriptExecutor } from '../../executor/index.ts'
import type { Fixture } from './fixture.ts'
import { endingByExit, python } from './peer.ts'

/** Tests modules beyond the standard library: tools, preloaded modules, packages. */

export function registerImportTests(at: Fixture): void {
  at.test(
    'functions of the tools directory are globals, async ones too; a broken file stops no other',
    ['harness', 'engine'],
    () =>
      withFiles(
        {
          'a_plain.py': 'def double(x): return 2 * x\n',
          'b_async.py': 'import asyncio\nasync def t(x):\n    await asyncio.sleep(0)\n    return x + 1\n',
          'c_broken.py': 'raise RuntimeError("on import")\n',
          'd_kills.py': 'import os\nos._exit(3)\n',
          'e_emits.py': 'def note(text): emit_log(text, level="debug")\n',
          'not_python.txt': 'x',
        },
        (toolsDir) =>
          at.with({ toolsDir }, async (peer, sandbox) => {
            assert.deepEqual(sandbox.ready.tools, {
              loaded: ['a_plain.py', 'b_async.py', 'e_emits.py'],
              failed: [
                { name: 'c_broken.py', message: 'RuntimeError: on import' },
                { name: 'd_kills.py', message: 'its process died while it was loaded' },
              ],
            })
            const calls = python`
              import asyncio
              async def main():
                  return await asyncio.gather(t(1), t(2), t(3))
              note('from a tool')
              emit_intermediate('calls', [t(1), double(t(1))])
              emit_result(asyncio.run(main()))
            `
            assert.deepEqual((await peer.run(calls)).events, [
              { type: 'log', message: 'from a tool', level: 'debug' },
              { type: 'intermediate', label: 'calls', data: [2, 4] },
              { type: 'final_result', data: [2, 3, 4] },
            ])
            await peer.run('double = None')
            const again = { sandbox, script: 'emit_result(double(2))' }
            const { finalData, warnings } = await new ScriptExecutor({ mode: 'interactive' }).run(again)
            assert.equal(finalData, 4)
            assert.deepEqual(
              warnings.map(({ code, message }) => [code, /[cd]_\w+\.py/.exec(message)?.[0]]),
              [
                ['tool_not_loaded', 'c_broken.py'],
                ['tool_not_loaded', 'd_kills.py'],
              ],
            )
          }),
      ),
    ({ capabilities }) => (capabilities.toolsDir ? undefined : 'it takes no tools directory'),
  )

  at.test(
    'a tool file that has to be loaded in each run, and fails in one, is an error that names it',
    ['harness'],
    () =>
      withFiles(
        {
          'late.py': python`
            import os, threading
            threading.Thread(target=threading.Event().wait, daemon=True).start()
            if os.path.exists('fail'): raise RuntimeError('no ' + os.environ['WHAT'])
            def answer(): return 42
          `,
        },
        (toolsDir) =>
          at.with({ toolsDir }, async (peer, sandbox) => {
            assert.deepEqual(
              [sandbox.ready.tools, sandbox.ready.preload.deferred],
              [{ loaded: ['late.py'], failed: [] }, ['late.py']],
            )
            const request = peer.request('emit_result(answer())', { secrets: { WHAT: 'luck' } })
            const put = { path: 'fail', mode: 0o644, offset: 0, content_base64: '' }
            await peer.send({ type: 'file_put', execution_id: request.execution_id, ...put }, request)
            const { events, done } = await peer.finish(request.execution_id)
            const traceback = String(events[0]?.['traceback'])
            const message = 'the tool file late.py could not be loaded: RuntimeError: no luck'
            assert.deepEqual(events, [{ type: 'error', message, traceback, kind: 'setup' }])
            assert.match(traceback, /late\.py", line 4, in <module>\n/)
            assert.deepEqual([done.ending, done.reusable], [endingByExit(1), true])
            assert.equal((await peer.run('emit_result(answer())')).result, 42)
          }),
      ),
    ({ capabilities: { toolsDir, threads } }) => (toolsDir && threads ? undefined : 'it takes no tools, or no threads'),
  )

  at.test(
    'a module that leaves a process behind does not delay the start, and is loaded in each run',
    ['kernel'],
    () =>
      withFiles(
        {
          'sg_daemon.py': python`
            import os, signal
            STARTED_BY = os.getpid()
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    signal.pause()
                os._exit(0)
            os.wait()
          `,
          'sg_kills.py': python`
            import os, signal
            if os.fork() == 0: signal.pause()
            os._exit(0)
          `,
        },
        (packages) =>
          at.with({ packages, preload: ['sg_daemon', 'sg_kills', 'json'] }, async (peer, sandbox) => {
            assert.deepEqual(sandbox.ready.preload, {
              loaded: ['json'],
              failed: [{ name: 'sg_kills', message: 'its process died while it was loaded' }],
              deferred: ['sg_daemon'],
            })
            const look = python`
              import os, sg_daemon
              others = [n for n in os.listdir('/proc') if n.isdigit() and n not in ('1', str(os.getpid()))]
              emit_result([sg_daemon.STARTED_BY == os.getpid(), len(others)])
            `
            for (const _ of [1, 2]) {
              const { result, done } = await peer.run(look)
              // The zygote and the run's own daemon.
              assert.deepEqual([result, done.ending, done.reusable], [[true, 2], endingByExit(), true])
            }
          }),
      ),
    ({ capabilities: { packages, preload, processes } }) =>
      packages && preload && processes ? undefined : 'it takes no preloads, or scripts cannot start processes',
  )

  at.test(
    'modules of `packages` can be imported, not changed, and preloaded; what leaves a thread is loaded in each run',
    ['engine'],
    () =>
      withFiles(
        {
          'sg_plain/__init__.py': 'from .inner import VALUE\nLOADED_BY = __import__("os").getpid()\n',
          'sg_plain/inner.py': 'VALUE = 41\n',
          'sg_thread.py': python`
            import os, threading
            EVENT = threading.Event()
            threading.Thread(target=EVENT.wait, daemon=True).start()
            LOADED_BY = os.getpid()
          `,
          'sg_broken.py': 'raise ValueError("broken")\n',
        },
        (packages) =>
          at.with(
            { packages, preload: ['json', 'sg_plain', 'sg_thread', 'sg_broken', 'sg_missing'] },
            async (peer, sandbox) => {
              const { preload } = sandbox.ready
              assert.deepEqual([preload.loaded, preload.deferred], [['json', 'sg_plain'], ['sg_thread']])
              assert.deepEqual(preload.failed, [
                { name: 'sg_broken', message: 'ValueError: broken' },
                { name: 'sg_missing', message: "ModuleNotFoundError: No module named 'sg_missing'" },
              ])
              const { result } = await peer.run(python`
                import os, sys
                ahead = ['sg_plain' in sys.modules, 'sg_thread' in sys.modules]
                import sg_plain, sg_thread
                try:
                    open(os.path.dirname(sg_plain.__file__) + '/new', 'w')
                    written = True
                except OSError:
                    written = False
                emit_result([ahead, sg_plain.VALUE, sg_plain.LOADED_BY == os.getpid(), sg_thread.LOADED_BY == os.getpid(), written])
              `)
              assert.deepEqual(result, [[true, true], 41, false, true, false])
            },
          ),
      ),
    ({ capabilities: { packages, preload, threads } }) =>
      packages && preload && threads ? undefined : 'it takes no packages or preloads, or scripts cannot start threads',
  )

  at.test('modules beside the script can be imported', ['harness'], () =>
    at.withAny(async (peer) => {
      const request = peer.request('import helper\nemit_result(helper.VALUE)')
      const content_base64 = Buffer.from('VALUE = 7\n').toString('base64')
      const put = { path: 'helper.py', mode: 0o644, offset: 0, content_base64 }
      await peer.send({ type: 'file_put', execution_id: request.execution_id, ...put }, request)
      assert.equal((await peer.finish(request.execution_id)).result, 7)
      const { events } = await peer.run('import helper')
      assert.match(String(events[0]?.['message']), /^ModuleNotFoundError/)
    }),
  )
}

/** Calls `use` with a directory that holds these files, by path, and removes it. */
export async function withFiles(
  files: Readonly<Record<string, string>>,
  use: (directory: string) => Promise<void>,
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-conformance-'))
  try {
    chmodSync(directory, 0o755)
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(directory, name)), { recursive: true })
      writeFileSync(join(directory, name), content)
    }
    await use(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
