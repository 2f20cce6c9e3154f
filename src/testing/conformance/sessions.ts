import assert from 'node:assert/strict'
import type { SandboxReport } from '../../sandbox/index.ts'
import type { Sandglass } from '../../sandglass.ts'
import type { Fixture } from './fixture.ts'

type Session = Awaited<ReturnType<Sandglass['session']>>

const needsSessions = ({ capabilities }: SandboxReport): string | undefined =>
  capabilities.sessions === undefined ? 'it has no sessions' : undefined
const needsProcesses = (report: SandboxReport): string | undefined =>
  needsSessions(report) ?? (report.capabilities.processes ? undefined : 'its scripts cannot start processes')
const needsCheckpoints = ({ capabilities }: SandboxReport): string | undefined =>
  capabilities.sessions === 'checkpoints' ? undefined : 'its sessions have no checkpoints'
const lacksCheckpoints = ({ capabilities }: SandboxReport): string | undefined =>
  capabilities.sessions === 'cells' ? undefined : 'it has no sessions without checkpoints'
const lacksSessions = ({ capabilities }: SandboxReport): string | undefined =>
  capabilities.sessions === undefined ? undefined : 'it has sessions'

const BOMB = 'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass'
/** Cells that cannot continue, and the status of each. */
const ENDS: readonly (readonly [name: string, cell: string, status: string])[] = [
  ['a timeout', 'while True: pass', 'timed-out'],
  ['a segmentation fault', 'import ctypes; ctypes.string_at(0)', 'crashed'],
  ['os._exit', 'import os; os._exit(0)', 'crashed'],
  ['a signal', 'import os, signal; os.kill(os.getpid(), signal.SIGKILL)', 'crashed'],
  ['the memory limit', 'b = bytearray(900 << 20)', 'memory-limit'],
  ['a fork bomb', BOMB, 'timed-out'],
  ['too much output', 'while True: print("a" * 10_000)', 'output-limit'],
]

/** Reads the score of the process of the cell. A copy of its session has a lower one from its first moment, so that the kernel kills it later. */
const OOM_SCORES = `import os
def read(pid, name):
    try: return open(f"/proc/{pid}/{name}").read().strip()
    except OSError: return ""
def is_copy(pid): return pid != str(os.getpid()) and read(pid, "comm").endswith("scored")
def look(): return [read(pid, "oom_score_adj") for pid in filter(str.isdigit, os.listdir("/proc")) if is_copy(pid)]
while (seen := look()) != ["500"]: assert "1000" not in seen
read("self", "oom_score_adj")`

/** Tests sessions, whose Python keeps its state. An engine without sessions must refuse them. */
export function registerSessionTests(at: Fixture): void {
  const inSession = async (use: (session: Session) => Promise<void>): Promise<void> => {
    await using session = await (await at.sandglass()).session()
    await use(session)
  }

  at.test(
    'variables last from cell to cell, an exception keeps them, and the last expression is the value',
    ['broker', 'kernel'],
    () =>
      inSession(async (session) => {
        const first = await session.run('x = [1]\nlen(x)')
        assert.deepEqual([first.status, first.state, first.number, first.value], ['step-done', 'kept', 1, 1])
        const failed = await session.run('x.append(2)\n1 / 0')
        assert.deepEqual([failed.status, failed.state], ['failed', 'kept'])
        assert.match(failed.traceback ?? '', /File "<cell 2>", line 2/)
        assert.deepEqual((await session.run('x')).value, [1, 2])
      }),
    needsSessions,
  )

  at.test(
    'a cell has inputs, files, secrets and collected files of its own',
    ['broker', 'channel'],
    () =>
      inSession(async (session) => {
        const cell =
          'import os\nkept = os.environ["KEY"]\nprint(kept)\nopen("out.txt", "w").write(open("in.txt").read() * n)'
        const given = { inputs: { n: 2 }, files: { 'in.txt': 'ab' }, secrets: { KEY: 'a-secret-value' } }
        const first = await session.run(cell, { ...given, collect: ['out.txt'] })
        assert.equal(first.error, null)
        assert.equal(first.stdout, '[redacted:KEY]\n')
        assert.equal(Buffer.from(first.files[0]?.content ?? []).toString(), 'abab')
        const later = await session.run('print(kept, "KEY" in os.environ)')
        assert.equal(later.stdout, '[redacted:KEY] False\n')
      }),
    needsSessions,
  )

  at.test(
    'a second cell is refused while one runs, and one that is interrupted keeps the state',
    ['broker', 'kernel'],
    () =>
      inSession(async (session) => {
        const cell = await session.run('x = 1\nemit_log("begun")\nwhile True: pass', {
          onLog: async () => {
            await assert.rejects(session.run('1'), { code: 'sandbox_busy' })
            await session.interrupt()
          },
        })
        assert.deepEqual([cell.status, cell.state], ['interrupted', 'kept'])
        assert.equal((await session.run('x')).value, 1)
      }),
    needsSessions,
  )

  at.test(
    'a process that a cell forks exits at the end of the cell: it neither reports as the cell nor runs a later one',
    ['broker', 'kernel'],
    () =>
      inSession(async (session) => {
        await session.run('import os, sys\nx = "parent"')
        for (const [ends, code] of [
          ['x = "child"', 0],
          ['1 / 0', 1],
          ['sys.exit(3)', 3],
        ]) {
          const cell = await session.run(
            `pid = os.fork()\nif pid == 0: ${ends}\nNone if pid == 0 else os.waitpid(pid, 0)[1] >> 8`,
          )
          assert.deepEqual([cell.status, cell.state, cell.error, cell.value], ['step-done', 'kept', null, code])
          assert.equal(cell.stderr.includes('ZeroDivisionError'), code === 1)
          const later = [await session.run('x'), await session.run('x'), await session.run('x')]
          assert.deepEqual(
            later.map(({ value }) => value),
            ['parent', 'parent', 'parent'],
          )
        }
      }),
    needsProcesses,
  )

  at.test(
    'a timer that a cell sets rings in a later one, and cells have their timeout beside it',
    ['broker', 'kernel'],
    () =>
      inSession(async (session) => {
        const handled = 'import signal\nrang = []\nsignal.signal(signal.SIGALRM, lambda *_: rang.append(1))'
        await session.run(`${handled}\nsignal.setitimer(signal.ITIMER_REAL, 0.5)`)
        await session.run('0')
        const rings = await session.run('while not rang: pass\nrang', { timeoutSec: 10 })
        assert.deepEqual([rings.error, rings.value], [null, [1]])
        const endless = await session.run('while True: pass', { timeoutSec: 0.5 })
        assert.deepEqual([endless.status, endless.error], ['timed-out', 'Script timed out after 0.5s'])
      }),
    needsProcesses,
  )

  for (const [name, cell, status] of ENDS)
    at.test(
      `a session survives ${name} with its variables`,
      ['broker', 'kernel'],
      () =>
        inSession(async (session) => {
          await session.run('x = [1]')
          const limits = { timeoutSec: status === 'timed-out' ? 0.5 : 30, maxOutputBytes: 100_000 }
          const broken = await session.run(`x.append(2)\n${cell}`, limits)
          assert.deepEqual([broken.status, broken.state], [status, 'rolled-back'])
          const next = await session.run('x.append(3)\nx')
          assert.deepEqual([next.value, next.state], [[1, 3], 'kept'])
        }),
      needsCheckpoints,
    )

  at.test(
    'an exception rolls back where the session or the cell asks for it',
    ['broker', 'kernel'],
    async () => {
      await using session = await (await at.sandglass()).session({ onError: 'rollback' })
      await session.run('x = [1]')
      const failed = await session.run('x.append(2)\n1 / 0')
      assert.deepEqual([failed.status, failed.state], ['failed', 'rolled-back'])
      const kept = await session.run('x.append(3)\n1 / 0', { onError: 'keep' })
      assert.deepEqual([kept.status, kept.state], ['failed', 'kept'])
      assert.deepEqual((await session.run('x')).value, [1, 3])
    },
    needsCheckpoints,
  )

  at.test(
    'a session whose checkpoints are off is lost with its process, and says why',
    ['broker', 'kernel'],
    async () => {
      await using session = await (await at.sandglass()).session({ checkpoints: 'off' })
      const { checkpoint } = await session.run('x = 1')
      assert.deepEqual([checkpoint.grade, checkpoint.lacks], ['none', ['checkpoints are off']])
      const broken = await session.run('import os; os._exit(1)')
      assert.deepEqual([broken.status, broken.state], ['crashed', 'lost'])
      await assert.rejects(session.run('x'), { code: 'session_lost', message: /checkpoints are off/ })
    },
    needsCheckpoints,
  )

  at.test(
    'a session that uses more than 45 % of its memory limit has no copy, says so, and is lost with its process',
    ['broker', 'kernel'],
    async () => {
      await using session = await (await at.sandglass()).session({ limits: { memoryBytes: 256 << 20 } })
      const lacks = ['the session uses more than 45% of its memory limit']
      const large = await session.run('x = b"a" * (130 << 20)')
      assert.deepEqual([large.state, large.checkpoint.grade, large.checkpoint.lacks], ['kept', 'none', lacks])
      await assert.rejects(session.checkpoint(), { code: 'checkpoint_unavailable' })
      assert.equal((await session.run('x = 1')).checkpoint.grade, 'whole')
      const rolledBack = await session.run('x = b"a" * (130 << 20)\nimport os; os._exit(1)')
      assert.equal(rolledBack.state, 'rolled-back')
      await session.run('x = b"a" * (130 << 20)')
      const broken = await session.run('import os; os._exit(1)')
      assert.deepEqual([broken.status, broken.state, broken.checkpoint.lacks], ['crashed', 'lost', lacks])
    },
    needsCheckpoints,
  )

  at.test(
    'the process of a cell has a higher OOM score than the copies of its session, also after a rollback',
    ['broker', 'kernel'],
    () =>
      inSession(async (session) => {
        await session.run('import ctypes; ctypes.CDLL(None).prctl(15, b"scored", 0, 0, 0)')
        assert.equal((await session.run(OOM_SCORES)).value, '1000')
        assert.equal((await session.run('import os; os._exit(1)')).state, 'rolled-back')
        // The copy that took over is chosen first, too, and so is what it starts.
        assert.equal((await session.run(OOM_SCORES)).value, '1000')
        const started = 'import subprocess\nsubprocess.check_output(["cat", "/proc/self/oom_score_adj"], text=True)'
        assert.equal((await session.run(started)).value, '1000\n')
      }),
    needsCheckpoints,
  )

  at.test(
    'a session goes back to a checkpoint until it is released, branches go on side by side, and a rollback ends programs of its own alone',
    ['broker', 'kernel'],
    () =>
      inSession(async (session) => {
        await session.run('x = 0')
        const checkpoint = await session.checkpoint()
        await session.run('import subprocess\nx = 1\np = subprocess.Popen(["sleep", "1000"])')
        const [first, second] = await session.branch(2)
        await first?.run('x = 2')
        await second?.run('import os; os._exit(1)')
        assert.deepEqual((await session.restore(checkpoint)).ended, ['sleep'])
        const values = await Promise.all([session, first, second].map(async (each) => (await each?.run('x'))?.value))
        assert.deepEqual(values, [0, 2, 1])
        await session.release(checkpoint)
        await assert.rejects(session.restore(checkpoint), { code: 'checkpoint_unavailable' })
        assert.equal((await session.run('x')).value, 0)
      }),
    needsCheckpoints,
  )

  at.test(
    'a session that is closed during a cell settles it, and serves nothing any more',
    ['broker', 'engine'],
    async () => {
      const session = await (await at.sandglass()).session()
      const onLog = (): void => void session.close()
      const cell = await session.run('emit_log("begun")\nwhile True: pass', { onLog })
      assert.deepEqual([cell.status, cell.state], ['cancelled', 'lost'])
      await assert.rejects(session.run('1'), { code: 'session_closed' })
    },
    needsSessions,
  )

  at.test(
    'what needs checkpoints is refused where the report has cells alone, and the session goes on',
    ['engine'],
    async () => {
      const refused = { code: 'checkpoint_unavailable' }
      await assert.rejects((await at.sandglass()).session({ onError: 'rollback' }), refused)
      await inSession(async (session) => {
        const { checkpoint } = await session.run('x = 1')
        assert.equal(checkpoint.grade, 'none')
        assert.equal(checkpoint.lacks.length, 1)
        await assert.rejects(session.run('x = 2', { onError: 'rollback' }), refused)
        await assert.rejects(session.checkpoint(), refused)
        await assert.rejects(session.restore('none'), refused)
        await assert.rejects(session.release('none'), refused)
        await assert.rejects(session.branch(2), refused)
        const next = await session.run('x')
        assert.deepEqual([next.value, next.number], [1, 2])
      })
    },
    lacksCheckpoints,
  )

  at.test(
    'a session that its cell ends is lost where the report has cells alone, and says so from then on',
    ['broker', 'engine'],
    () =>
      inSession(async (session) => {
        await session.run('x = 1')
        const broken = await session.run('import os; os._exit(0)')
        assert.deepEqual([broken.status, broken.state, broken.checkpoint.grade], ['crashed', 'lost', 'none'])
        await assert.rejects(session.run('x'), { code: 'session_lost' })
        await assert.rejects(session.variables(), { code: 'session_lost' })
      }),
    lacksCheckpoints,
  )

  at.test(
    'a session is refused where the report has none',
    ['broker', 'engine'],
    async () => {
      const opening = (await at.sandglass()).session()
      await assert.rejects(opening, { code: 'activity_unavailable' })
    },
    lacksSessions,
  )
}
