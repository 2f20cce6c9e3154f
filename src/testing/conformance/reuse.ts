import assert from 'node:assert/strict'
import type { Fixture } from './fixture.ts'
import { endingByExit, python, timeless } from './peer.ts'

/** Tests that one run leaves nothing for the next one. */
export function registerReuseTests(at: Fixture): void {
  at.test('globals are fresh', ['harness'], () =>
    at.withAny(async (peer) => {
      await peer.run('x=1')
      assert.equal((await peer.run("emit_result('x' in globals())")).result, false)
    }),
  )

  at.test('patched modules, the environment and the current directory are as before', ['harness', 'webassembly'], () =>
    at.withAny(async (peer) => {
      const look = python`
        import builtins, gc, json, os, sys, threading
        emit_result([json.dumps([1]), sorted([2, 1]), os.environ.get('LEFT'), os.getcwd(), 'left' in sys.modules,
                     sys.path.count('/left'), threading.active_count(), sys.getrecursionlimit(), gc.isenabled()])
      `
      const before = (await peer.run(look)).result
      const spoil = python`
        import builtins, gc, json, os, sys, threading, types
        json.dumps = builtins.sorted = lambda *_: 'patched'
        os.environ['LEFT'] = '1'
        os.chdir('/')
        sys.modules['left'] = types.ModuleType('left')
        sys.path.append('/left')
        sys.setrecursionlimit(300)
        gc.disable()
        if ${(await at.report()).capabilities.threads ? 'True' : 'False'}:
            threading.Thread(target=threading.Event().wait, daemon=True).start()
      `
      assert.deepEqual(timeless((await peer.run(spoil)).done).ending, endingByExit())
      assert.deepEqual((await peer.run(look)).result, before)
    }),
  )

  at.test('random numbers differ from run to run', ['harness', 'webassembly'], () =>
    at.withAny(async (peer) => {
      const draw = 'import random, os, uuid\nemit_result([random.random(), str(uuid.uuid4()), os.urandom(8)])'
      const drawn = [await peer.run(draw), await peer.run(draw), await peer.run(draw)].flatMap((run) => run.result)
      assert.equal(new Set(drawn).size, 9)
    }),
  )

  at.test('files of a run are gone, wherever it could write', ['kernel', 'webassembly'], () =>
    at.withAny(async (peer) => {
      const list = python`
        import os
        emit_result({d: sorted(os.listdir(d)) for d in (os.getcwd(), '/tmp', '/var/tmp', '/dev/shm') if os.path.isdir(d)})
      `
      const before = (await peer.run(list)).result
      const leave = python`
        import os
        for d in (os.getcwd(), '/tmp', '/var/tmp', '/dev/shm'):
            if not os.path.isdir(d): continue
            os.makedirs(d + '/a/b/c')
            open(d + '/a/b/file', 'w').write('x')
            open(d + '/.hidden', 'w').write('x')
            os.symlink('/etc', d + '/link')
            os.mkfifo(d + '/fifo')
            os.chmod(d + '/a/b', 0)
            os.chmod(d + '/a', 0o500)
      `
      assert.equal((await peer.run(leave)).done.reusable, true)
      assert.deepEqual((await peer.run(list)).result, before)
    }),
  )

  at.test('three thousand nested directories are wiped or the sandbox is given up', ['kernel'], () =>
    at.withAny(async (peer) => {
      const { done } = await peer.run('import os\nfor _ in range(3000):\n    os.mkdir("d")\n    os.chdir("d")\n')
      if (done.reusable) assert.deepEqual((await peer.run("import os\nemit_result(os.listdir('.'))")).result, [])
      else assert.equal(await peer.next(), null)
    }),
  )

  at.test(
    'processes of a run are gone, daemons too',
    ['kernel'],
    () =>
      at.withAny(async (peer) => {
        const leave = python`
          import os, signal, subprocess, sys
          subprocess.Popen(['sleep', '1000'])
          subprocess.Popen(['sleep', '1001'], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
          read, write = os.pipe()
          if os.fork() == 0:
              os.setsid()
              if os.fork() == 0:
                  for n in range(1, 32):
                      try: signal.signal(n, signal.SIG_IGN)
                      except OSError: pass
                  os.write(write, b'.')
                  while True: signal.pause()
              os._exit(0)
          os.read(read, 1)
        `
        const left = await peer.run(leave)
        assert.deepEqual([left.events, left.done.reusable], [[], true])
        const list = python`
          import os
          pids = [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid(), os.getppid())]
          emit_result([open(f'/proc/{p}/cmdline').read() for p in pids])
        `
        assert.deepEqual((await peer.run(list)).result, [])
      }),
    (report) => (report.capabilities.processes ? undefined : 'scripts cannot start processes'),
  )

  at.test(
    'a fork bomb at the deadline leaves nobody',
    ['kernel'],
    () =>
      // More processes can reach other limits first on gVisor, where each takes 17 threads of the machine and 4 MiB.
      at.with({ limits: { pids: 16 } }, async (peer) => {
        const bomb = python`
          import os
          while True:
              try: os.fork()
              except OSError: pass
        `
        const { done } = await peer.run(bomb, { timeout_sec: 0.3 })
        assert.equal(done.ending?.cause, 'timeout')
        if (!done.reusable) return
        const count = "import os\nemit_result(len([p for p in os.listdir('/proc') if p.isdigit()]))"
        assert.ok(Number((await peer.run(count)).result) <= 3)
      }),
    (report) => (report.capabilities.processes ? undefined : 'scripts cannot start processes'),
  )
}
