import assert from 'node:assert/strict'
import type { SandboxReport } from '../../sandbox/index.ts'
import type { Fixture } from './fixture.ts'
import { leastOf } from './least-of.ts'
import { endingByExit, python, timeless } from './peer.ts'

/** The steps of a CPU time: Linux tells user and system time of ended processes in whole ticks of 10 ms. */
const TICKS_MS = 20

/** The frames of one run, for each way in which it can end. */
export function registerRunTests(at: Fixture): void {
  at.test('a result, then script_done', ['broker', 'channel'], () =>
    at.with({}, async (peer) => {
      const { events, done } = await peer.run("emit_result({'a':1})")
      assert.deepEqual(events, [{ type: 'final_result', data: { a: 1 } }])
      assert.deepEqual(timeless(done), {
        ending: endingByExit(),
        stdout_bytes: 0,
        stderr_bytes: 0,
        limits_hit: [],
        warnings: [],
        reusable: true,
        use: 1,
      })
      assert.equal(done.memory_kills ?? 0, 0)
    }),
  )

  at.test(
    'a harness that counts CPU time counts that of a script and of all processes that it started',
    ['broker', 'kernel'],
    () =>
      at.with({}, async (peer, sandbox) => {
        const atStart = sandbox.ready.checks['cpu_time_ms']
        const { done, result } = await peer.run(python`
          import os, signal, time
          def use_a_tenth():
              start = time.process_time()
              while time.process_time() < start + 0.1: pass
          def fork(work):
              if (pid := os.fork()) == 0:
                  work()
                  os._exit(0)
              return pid
          reading, writing = os.pipe()
          def orphan():
              os.setsid()
              use_a_tenth()
              os.write(writing, b'.')
              signal.pause()
          use_a_tenth()
          os.waitpid(fork(use_a_tenth), 0)
          os.waitpid(fork(lambda: fork(orphan)), 0)
          os.read(reading, 1)
          emit_result(1)
        `)
        assert.equal(result, 1)
        if (typeof atStart !== 'number') return assert.equal(done.cpu_time_ms, undefined)
        const first = done.cpu_time_ms ?? assert.fail('it counts at the start, and not at the end of a run')
        assert.ok(first - atStart >= 300 - TICKS_MS, `${atStart} ms at the start, then ${first} ms`)
        const second = (await peer.run('')).done.cpu_time_ms ?? assert.fail('it no longer counts')
        assert.ok(second >= first - TICKS_MS && second - first < 200, `${first} ms, after an empty run ${second} ms`)
      }),
    ({ capabilities }) => (capabilities.processes ? undefined : 'scripts cannot start processes'),
  )

  at.test('intermediates and logs in order, with the level info by default', ['harness'], () =>
    at.withAny(async (peer) => {
      const { events } = await peer.run(python`
        emit_log('m')
        emit_intermediate('progress', 50)
        emit_log(message='w', level='warning')
        emit_intermediate('empty')
        emit_result(data=None)
      `)
      assert.deepEqual(events, [
        { type: 'log', message: 'm', level: 'info' },
        { type: 'intermediate', label: 'progress', data: 50 },
        { type: 'log', message: 'w', level: 'warning' },
        { type: 'intermediate', label: 'empty', data: null },
        { type: 'final_result', data: null },
      ])
    }),
  )

  at.test('a value that is shown is a display, by its MIME types', ['harness'], () =>
    at.withAny(async (peer) => {
      const { events } = await peer.run(python`
        class Picture:
            def _repr_png_(self): return b'\x89PNG'
            def __repr__(self): return 'a picture'
        display(Picture(), 1)
        emit_result(Picture())
      `)
      const common = { type: 'display', kind: 'display', left_out: [], after: { stdout: 0 } }
      const picture = { ...common, data: { 'image/png': 'iVBORw==', 'text/plain': 'a picture' } }
      assert.deepEqual(events, [
        picture,
        { ...common, data: { 'text/plain': '1' } },
        picture,
        { type: 'final_result', data: { display: 2, text: 'a picture' } },
      ])
    }),
  )

  at.test('nothing but script_done for a script that says nothing', ['harness'], () =>
    at.withAny(async (peer) => {
      const { events, done } = await peer.run('')
      assert.deepEqual([events, done.ending], [[], endingByExit()])
    }),
  )

  at.test('an exception with its message and the traceback of the script’s own lines', ['harness'], () =>
    at.withAny(async (peer) => {
      const { events, done } = await peer.run('\n\ndef f():\n    1/0\nf()\n')
      const traceback = String(events[0]?.['traceback'])
      assert.deepEqual(events, [
        { type: 'error', message: 'ZeroDivisionError: division by zero', traceback, kind: 'exception' },
      ])
      assert.match(
        traceback,
        /^Traceback \(most recent call last\):\n {2}File "<script>", line 5, in <module>\n {4}f\(\)\n/,
      )
      assert.match(traceback, /line 4, in f\n {4}1\/0\n/)
      assert.deepEqual({ ending: done.ending, reusable: done.reusable }, { ending: endingByExit(1), reusable: true })
    }),
  )

  at.test('a syntax error, and nothing of the script ran', ['harness'], () =>
    at.withAny(async (peer) => {
      const { events } = await peer.run("emit_log('ran')\nif True\n    pass")
      assert.deepEqual(
        events.map((event) => [event['type'], event['kind']]),
        [['error', 'syntax']],
      )
      assert.match(String(events[0]?.['traceback']), /File "<script>", line 2/)
    }),
  )

  at.test('a timeout with the traceback of where it was', ['broker', 'webassembly'], () =>
    at.withAny(async (peer) => {
      const { events, done } = await peer.run('x = 1\nwhile True: pass\n', { timeout_sec: 1 })
      const traceback = String(events[0]?.['traceback'])
      assert.deepEqual(events, [{ type: 'error', message: 'Script timed out after 1s', traceback, kind: 'timeout' }])
      assert.match(traceback, /File "<script>", line 2, in <module>/)
      assert.deepEqual(
        { cause: done.ending?.cause, by: done.ending?.by, reusable: done.reusable },
        { cause: 'timeout', by: 'harness', reusable: true },
      )
    }),
  )

  for (const [name, script] of [
    ['a loop inside C', 'sum(range(10**12))'],
    [
      'a script that takes the alarm away',
      'import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass',
    ],
    [
      'a script that catches everything',
      'while True:\n    try:\n        while True: pass\n    except BaseException: pass',
    ],
    ['a script that stops itself', 'import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)'],
  ] as const) {
    at.test(
      `${name} is killed within a second of the deadline, with the same message`,
      ['broker', 'engine', 'kernel', 'webassembly'],
      () =>
        at.withAny(async (peer) => {
          const tookMs = await leastOf(3, 1250, async () => {
            const { events, done } = await peer.run(script, { timeout_sec: 0.25 })
            const messages = events.map((event) => [event['type'], event['kind'], event['message']])
            assert.deepEqual(messages, [['error', 'timeout', 'Script timed out after 0.25s']])
            assert.deepEqual([done.ending?.cause, done.reusable], ['timeout', true])
            assert.equal((await peer.run('emit_result(1)')).result, 1)
            return done.duration_ms
          })
          assert.ok(tookMs < 1250, `${tookMs} ms`)
        }),
      script.includes('SIGSTOP') ? needsProcesses : undefined,
    )
  }

  at.test('sys.exit is an error event, and the harness serves the next run', ['broker'], () =>
    at.withAny(async (peer) => {
      const { events, done } = await peer.run('import sys; sys.exit(3)')
      assert.deepEqual(
        events.map((event) => [event['type'], event['kind'], event['message']]),
        [['error', 'exit', 'SystemExit: 3 (the script called sys.exit)']],
      )
      assert.deepEqual([done.ending, done.reusable], [endingByExit(3), true])
      assert.equal((await peer.run('emit_result(1)')).result, 1)
    }),
  )

  at.test(
    'exit handlers run after every end of a script by itself and after its error; their time is limited',
    ['broker'],
    () =>
      at.withAny(async (peer) => {
        for (const [end, code] of [
          ['', 0],
          ['1/0', 1],
          ['sys.exit(3)', 3],
        ] as const) {
          const { events, stdout, done } = await peer.run(python`
          import atexit, sys, time
          atexit.register(print, 'handler')
          atexit.register(emit_log, 'told')
          ${end}
        `)
          const types = events.map((event) => event['type']).filter((type) => type !== 'stdout')
          assert.deepEqual(types, code === 0 ? ['log'] : ['error', 'log'])
          assert.deepEqual([stdout, done.ending], ['handler\n', endingByExit(code)])
          const late = await peer.run(`import atexit, sys, time\natexit.register(time.sleep, 60)\n${end}`, {
            timeout_sec: 0.3,
          })
          const kinds = late.events.filter((event) => event['type'] === 'error').map((event) => event['kind'])
          assert.equal(kinds.at(-1), 'timeout')
          assert.deepEqual([late.done.ending?.cause, late.done.reusable], ['timeout', true])
        }
      }),
  )

  at.test('a process that ends without a frame is reported, and the harness serves the next run', ['broker'], () =>
    at.withAny(async (peer) => {
      const gone = await peer.run("emit_log('before')\nimport os; os._exit(7)")
      assert.deepEqual(
        gone.events.map((event) => [event['type'], event['kind'] ?? event['message']]),
        [
          ['log', 'before'],
          ['error', 'crash'],
        ],
      )
      assert.deepEqual(gone.done.ending, endingByExit(7))
      assert.equal((await peer.run('emit_result(1)')).result, 1)
    }),
  )

  at.test(
    'a process that a signal ends is reported with the name of the signal, and the harness serves the next run',
    ['kernel'],
    () =>
      at.withAny(async (peer) => {
        const broken = await peer.run('import os, signal; os.kill(os.getpid(), signal.SIGSEGV)')
        const ending = { cause: 'signal', exit_code: null, signal: 'SIGSEGV', by: 'script' }
        assert.deepEqual([broken.events, broken.done.ending, broken.done.reusable], [[], ending, true])
        const killed = await peer.run('import os, signal; os.kill(os.getpid(), signal.SIGKILL)')
        assert.deepEqual([killed.done.ending?.signal, killed.done.ending?.by], ['SIGKILL', 'unknown'])
        // The kernel shows the exit code of a non-dumpable process only to its parent.
        const hidden = 'import ctypes, os, signal; ctypes.CDLL(None).prctl(4, 0)\n'
        assert.deepEqual((await peer.run(`${hidden}os._exit(7)`)).done.ending, endingByExit(7))
        const hiding = await peer.run(`${hidden}os.kill(os.getpid(), signal.SIGSEGV)`)
        assert.deepEqual(hiding.done.ending, ending)
        assert.equal((await peer.run('emit_result(1)')).result, 1)
      }),
    needsProcesses,
  )

  at.test('missing secrets are listed, exactly, and nothing runs', ['broker'], () =>
    at.with({}, async (peer) => {
      const { events, done } = await peer.run("emit_log('ran')", {
        required_secrets: ['A_KEY', 'STRIPE_KEY', 'OTHER'],
        secrets: { A_KEY: 'x' },
      })
      const message = 'required secrets are missing: STRIPE_KEY, OTHER'
      assert.deepEqual(events, [{ type: 'error', message, traceback: null, kind: 'secrets' }])
      assert.deepEqual(
        { cause: done.ending?.cause, reusable: done.reusable, use: done.use },
        { cause: 'not-started', reusable: true, use: 0 },
      )
    }),
  )

  at.test('secrets are in the environment of their own run alone', ['broker'], () =>
    at.withAny(async (peer) => {
      const look = "import os\nemit_result(os.environ.get('STRIPE_KEY'))"
      const secrets = { STRIPE_KEY: 'sk-ü' }
      assert.equal((await peer.run(look, { secrets, required_secrets: ['STRIPE_KEY'] })).result, 'sk-ü')
      assert.equal((await peer.run(look)).result, null)
    }),
  )

  at.test('inputs are globals, by value', ['harness'], () =>
    at.withAny(async (peer) => {
      const inputs = { rows: [{ n: 1 }, null], name: 'ü' }
      const { result } = await peer.run('rows.append(name)\nemit_result(rows)', { inputs })
      assert.deepEqual(result, [{ n: 1 }, null, 'ü'])
    }),
  )

  at.test('a run counts, a refusal does not', ['broker'], () =>
    at.with({}, async (peer) => {
      const uses = [
        (await peer.run('')).done.use,
        (await peer.run('1/0')).done.use,
        (await peer.run('', { required_secrets: ['X'] })).done.use,
        (await peer.run('')).done.use,
      ]
      assert.deepEqual(uses, [1, 2, 2, 3])
    }),
  )

  at.test('a script may be long', ['channel'], () =>
    at.withAny(async (peer) => {
      const script = `${'# a comment\n'.repeat(200_000)}emit_result(len('${'x'.repeat(1_000_000)}'))`
      assert.equal((await peer.run(script)).result, 1_000_000)
    }),
  )
}

/** A script without a process of its own gets no signals. */
const needsProcesses = ({ capabilities }: SandboxReport): string | undefined =>
  capabilities.processes ? undefined : 'a script has no process of its own'
