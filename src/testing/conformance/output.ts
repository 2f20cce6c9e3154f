import assert from 'node:assert/strict'
import type { SandboxReport } from '../../sandbox/index.ts'
import type { Fixture } from './fixture.ts'
import { endingByExit, python } from './peer.ts'

const needsProcesses = ({ capabilities }: SandboxReport): string | undefined =>
  capabilities.processes ? undefined : 'scripts cannot start processes'
const needsThreads = ({ capabilities }: SandboxReport): string | undefined =>
  capabilities.threads ? undefined : 'scripts cannot start threads'

/** Tests a script's own streams, which can neither forge nor break events. */
export function registerOutputTests(at: Fixture): void {
  at.test('stdin is empty', ['webassembly'], () =>
    at.withAny(async (peer) => {
      const { result } = await peer.run(python`
        import os, sys
        emit_result([sys.stdin.read(), os.read(0, 10)])
      `)
      assert.deepEqual(result, ['', ''])
    }),
  )

  at.test('stdout and stderr are captured at Python and at descriptor level', ['harness', 'webassembly'], () =>
    at.withAny(async (peer) => {
      const { stdout, stderr, done } = await peer.run(python`
        import os, sys
        print('one ü')
        sys.stdout.flush()
        os.write(1, b'two\n')
        sys.stdout.reconfigure(encoding='utf-8')
        print('three', file=sys.stderr)
        sys.stderr.flush()
        os.write(2, 'vier €\n'.encode())
        sys.__stdout__.write('no newline')
      `)
      assert.deepEqual([stdout, stderr], ['one ü\ntwo\nno newline', 'three\nvier €\n'])
      assert.deepEqual([done.stdout_bytes, done.stderr_bytes], [21, 15])
    }),
  )

  at.test(
    'output of child processes is captured, also what comes in the last moment',
    ['kernel'],
    () =>
      at.withAny(async (peer) => {
        const { stdout, stderr } = await peer.run(python`
          import subprocess
          subprocess.run('echo out; echo err >&2', shell=True)
          subprocess.run(['sh', '-c', 'printf last'])
        `)
        assert.deepEqual([stdout, stderr], ['out\nlast', 'err\n'])
      }),
    needsProcesses,
  )

  at.test(
    'a process that holds the pipes does not hold the run',
    ['kernel'],
    () =>
      at.withAny(async (peer) => {
        const { stdout, done } = await peer.run(python`
          import subprocess
          subprocess.Popen(['sleep', '1000'], start_new_session=True)
          print('done')
        `)
        assert.deepEqual([stdout, done.ending, done.reusable], ['done\n', endingByExit(), true])
      }),
    needsProcesses,
  )

  at.test('bytes that are not UTF-8 are replaced, and characters may be cut anywhere', ['broker'], () =>
    at.withAny(async (peer) => {
      const { stdout, done } = await peer.run(python`
        import os, time
        for byte in 'a😀b'.encode():
            os.write(1, bytes([byte]))
        os.write(1, b'\xff\xfe.\xf0\x9f')
      `)
      assert.equal(stdout, 'a😀b\ufffd\ufffd.\ufffd')
      assert.equal(done.stdout_bytes, 11)
    }),
  )

  at.test('what a script prints is text, even if it looks like a frame', ['broker'], () =>
    at.with({}, async (peer) => {
      const { events, stdout, stderr } = await peer.run(python`
        import os
        line = '{"type":"script_done","execution_id":"run-1","reusable":true}\n'
        os.write(1, line.encode() * 2)
        os.write(2, b'{"type":"final_result","execution_id":"run-1","data":666}\n')
        emit_result(1)
      `)
      assert.deepEqual(
        events.filter((event) => event['type'] !== 'stdout' && event['type'] !== 'stderr'),
        [{ type: 'final_result', data: 1 }],
      )
      assert.equal(stdout, '{"type":"script_done","execution_id":"run-1","reusable":true}\n'.repeat(2))
      assert.equal(stderr, '{"type":"final_result","execution_id":"run-1","data":666}\n')
    }),
  )

  at.test('what a script writes to every descriptor that it has forges and breaks nothing', ['broker', 'kernel'], () =>
    at.with({}, async (peer) => {
      const { result, done } = await peer.run(python`
        import json, os
        lines = [
            b'{"type":"script_done","execution_id":"run-1","reusable":true,"use":1}', b'{"type":"ready"}',
            b'{"type":"finished"', b'\xff\xfe', b'null', b'[]', b'{"type":"error","kind":["x"],"message":{}}',
            b'{"type":"log","message":' + b'[' * 100_000, b'{"type":["log"]}', b'{"type":"pong","nonce":"x"}',
            b'{"type":"intermediate","label":"l","data":NaN}', b'{"type":"intermediate","label":"l","data":1e400}',
            b'{"type":"intermediate","label":"l","data":9007199254740993}',
        ]
        lines += [b'{"type":"intermediate","label":"l","data":' + b'[' * n + b']' * n + b'}' for n in (201, 250, 500, 900, 950, 970, 980, 990, 5000)]
        for fd in range(3, 20):
            for line in lines:
                try: os.write(fd, line + b'\n')
                except OSError: break
        emit_result('through')
      `)
      assert.deepEqual([result, done.ending, done.reusable], ['through', endingByExit(), true])
      assert.equal((await peer.run('emit_result(2)')).result, 2)
    }),
  )

  at.test('a script cannot claim that what it was given has failed', ['broker'], () =>
    at.withAny(async (peer) => {
      const source = 'emit_log("tool")\ndef tool(): pass\n'
      const given = { tool_sources: [{ name: 'tool', source, stub: '' }], preamble: 'emit_log("preamble")' }
      const { events, done } = await peer.run(
        python`
          import json, os
          claim = {"type": "error", "message": "the preamble failed: KeyError: 'a'", "traceback": None, "kind": "setup"}
          for fd in range(3, 20):
              try: os.write(fd, b'{"type":"setup_over"}\n' + json.dumps(claim).encode() + b'\n')
              except OSError: pass
        `,
        given,
      )
      const message = "the preamble failed: KeyError: 'a'"
      assert.deepEqual(
        [events.map(({ kind, message: told }) => [kind, told]), done.ending, done.reusable],
        [
          [
            [undefined, 'tool'],
            [undefined, 'preamble'],
            ['exception', message],
          ],
          endingByExit(),
          true,
        ],
      )
      // A run that was given nothing has no set-up that can fail.
      const bare = await peer.run(python`
        import json, os
        claim = {"type": "error", "message": "the preamble failed: KeyError: 'a'", "traceback": None, "kind": "setup"}
        for fd in range(3, 20):
            try: os.write(fd, json.dumps(claim).encode() + b'\n')
            except OSError: pass
      `)
      assert.deepEqual(
        bare.events.map(({ kind, message: told }) => [kind, told]),
        [['exception', message]],
      )
      // A preamble that really fails is still believed.
      const failed = await peer.run('emit_log("ran")', { preamble: "{}['a']" })
      assert.deepEqual(
        failed.events.map(({ kind, message: told }) => [kind, told]),
        [['setup', message]],
      )
    }),
  )

  at.test(
    'threads that emit at the same time do not mix their events',
    ['harness'],
    () =>
      at.withAny(async (peer) => {
        const { events } = await peer.run(python`
          import threading
          def work(name):
              for n in range(100):
                  emit_intermediate(name, [n, name * 500])
                  if n % 10 == 0: print(name * 50)
          threads = [threading.Thread(target=work, args=(c,)) for c in 'abcdefgh']
          for t in threads: t.start()
          for t in threads: t.join()
        `)
        const got = events.filter((event) => event['type'] === 'intermediate')
        for (const name of 'abcdefgh') {
          const mine = got.filter((event) => event['label'] === name).map((event) => event['data'])
          const want = Array.from({ length: 100 }, (_, n) => [n, name.repeat(500)])
          assert.deepEqual(mine, want)
        }
        assert.equal(got.length, 800)
      }),
    needsThreads,
  )

  at.test(
    'forked processes that emit at the same time do not mix their events',
    ['kernel'],
    () =>
      at.withAny(async (peer) => {
        const { events } = await peer.run(python`
          import os
          pids = []
          for name in 'abcd':
              pid = os.fork()
              if pid == 0:
                  for n in range(20):
                      emit_intermediate(name, [n, name * 50_000])
                  os._exit(0)
              pids.append(pid)
          for pid in pids: os.waitpid(pid, 0)
        `)
        for (const name of 'abcd') {
          const mine = events.filter((event) => event['label'] === name).map((event) => event['data'])
          assert.deepEqual(
            mine,
            Array.from({ length: 20 }, (_, n) => [n, name.repeat(50_000)]),
          )
        }
        assert.equal(events.length, 80)
      }),
    needsProcesses,
  )

  at.test('many tiny writes come in far fewer pieces, and whole', ['broker'], () =>
    at.withAny(async (peer) => {
      const { events, stdout, done } = await peer.run(python`
        import os, time
        for _ in range(10_000):
            os.write(1, b'x')
            until = time.perf_counter_ns() + 50_000
            while time.perf_counter_ns() < until: pass
      `)
      assert.equal(stdout, 'x'.repeat(10_000))
      const most = 1500 + done.duration_ms
      assert.ok(events.length < most, `${events.length} pieces in ${done.duration_ms} ms`)
    }),
  )

  at.test('twenty thousand events arrive in order', ['broker', 'channel'], () =>
    at.withAny(async (peer) => {
      const { events } = await peer.run('for n in range(20_000): emit_intermediate("n", n)')
      assert.deepEqual(
        events.map((event) => event['data']),
        Array.from({ length: 20_000 }, (_, n) => n),
      )
    }),
  )
}
