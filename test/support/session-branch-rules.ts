import { expect, test } from 'vitest'
import type { Workspace } from '../../src/index.ts'

const ORIGIN = 'the session that this branch comes from'

/** What a branch lacks of the state of its origin, and how it is told. @param workspace gives an open workspace. */
export function describeWhatBranchesLack(workspace: () => Workspace): void {
  test('a branch names what stays with its origin, at once and with its first cell', async () => {
    await using session = await workspace().session()
    await session.run(`import mmap, multiprocessing, os, sqlite3, subprocess, threading
gate = threading.Event()
thread = threading.Thread(target=gate.wait, name="waits", daemon=True); thread.start()
out, into = os.pipe(); os.write(into, b"ab")
program = subprocess.Popen(["sleep", "1000"])
fork = multiprocessing.get_context("fork")
child = fork.Process(target=gate.wait); child.start()
pool = fork.Pool(1)
db = sqlite3.connect("branch.db"); db.execute("create table t (n)"); db.commit(); db.execute("insert into t values (1)")
shared = mmap.mmap(-1, 2); shared[:] = b"ab"`)
    const [branch] = await session.branch(1)
    expect(session.missing).toEqual([])
    const missing = branch?.missing.filter((text) => !/ thread Thread-\d/.test(text)) // those of the pool
    expect(missing).toEqual([
      'not in this branch: thread waits',
      'not in this branch: the SQLite transaction on branch.db',
      expect.stringMatching(new RegExp(`^programs stay with ${ORIGIN}: [^,]+, [^,]+, [^,]+$`)),
      `a process pool: its processes stay with ${ORIGIN}`,
      'branch.db: SQLite was in a transaction there; close the connection, and connect again',
      expect.stringContaining(`shared memory stays shared with ${ORIGIN}: unnamed memory`),
      expect.stringMatching(/^pipes and sockets are closed: pipe \d+, pipe \d+/),
    ])
    const use = `def tried(use):
    try: return use()
    except Exception as error: return f"{type(error).__name__}: {error}"
[thread.is_alive(), *map(tried, (program.poll, program.wait, lambda: program.wait(1), program.terminate, child.is_alive, child.terminate))]`
    const first = await branch?.run(use)
    const foreign = expect.stringMatching(`^ChildProcessError: process \\d+ belongs to ${ORIGIN}$`) as string
    expect(first?.value).toEqual([
      false,
      foreign,
      foreign,
      foreign,
      foreign,
      expect.stringMatching(/^AssertionError: /),
      foreign,
    ])
    expect(first?.warnings).toEqual([
      {
        code: 'branch_lacks_state',
        message: `this branch began without a part of the state; ${branch?.missing.join('; ')}`,
        traceback: null,
      },
    ])
    // Its own programs are its own, and subprocess can forget those of its origin.
    const own =
      'del program, pool; import gc; gc.collect(); [subprocess.run(["sh", "-c", "exit 3"]).returncode, multiprocessing.active_children()]'
    const second = await branch?.run(own)
    expect([second?.stderr, second?.value, second?.warnings]).toEqual(['', [3, []], []])
    await branch?.run('import os; os._exit(1)')
    const parent = await session.run(
      '[thread.is_alive(), program.poll(), child.is_alive(), pool.map(abs, [-1]), os.read(out, 2).decode(), db.execute("select n from t").fetchall()]',
    )
    expect(parent).toMatchObject({ value: [true, null, true, [1], 'ab', [[1]]], warnings: [] })
  })

  test('a branch of a session without such state lacks nothing, and says nothing', async () => {
    await using session = await workspace().session()
    await session.run('import subprocess\nx = [1]\np = subprocess.Popen(["sh", "-c", "exit 3"]); p.wait()')
    const [branch] = await session.branch(1)
    expect(branch?.missing).toEqual([])
    expect(await branch?.run('[x, p.poll()]')).toMatchObject({ value: [[1], 3], missing: [], warnings: [] })
  })

  test('a lock on a file stays with the origin, whose position in the file a branch does not share', async () => {
    await using session = await workspace().session()
    await session.run(
      'import fcntl\nf = open("locked.txt", "w+"); f.write("0123"); f.flush(); f.seek(0); fcntl.flock(f, fcntl.LOCK_EX)',
    )
    const [branch] = await session.branch(1)
    expect(branch?.missing).toEqual([`locked.txt: the lock stays with ${ORIGIN}`])
    expect(await branch?.run('f.read(2)')).toMatchObject({ value: '01' })
    expect(await session.run('f.read(2)')).toMatchObject({ value: '01' })
    const taken =
      'try: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB); taken = True\nexcept OSError: taken = False\ntaken'
    expect(await branch?.run(taken)).toMatchObject({ value: false })
  })

  test('output of a branch that nobody reads delays neither its origin nor another branch', async () => {
    await using session = await workspace().session({ timeoutSec: 10 })
    await session.run('import mmap, struct, time\nlines = mmap.mmap(-1, 8)') // the memory stays shared
    const [unread, other] = await session.branch(2)
    const writes = 'for n in range(20_000):\n    emit_log("y" * 2000)\n    lines[:] = struct.pack("q", n + 1)'
    const events = unread?.stream(writes, { timeoutSec: 60, maxOutputBytes: 100_000_000 })[Symbol.asyncIterator]()
    await events?.next()
    // Once the branch writes no more, because nobody reads.
    const waits =
      'before = None\nwhile before != lines[:] or before == bytes(8):\n    before = lines[:]\n    time.sleep(0.3)\nstruct.unpack("q", lines[:])[0] < 20_000'
    expect(await session.run(waits, { timeoutSec: 20 })).toMatchObject({ status: 'step-done', value: true })
    expect(await other?.run('1')).toMatchObject({ status: 'step-done', value: 1 })
    expect(await session.run('before == lines[:]')).toMatchObject({ value: true })
    await events?.return?.()
    await Promise.all([unread?.close(), other?.close()])
  })

  test('what a branch lacks is told without secrets', async () => {
    await using session = await workspace().session()
    const secrets = { KEY: 'a-secret-of-the-test' }
    await session.run(
      'import os, threading\nthreading.Thread(target=threading.Event().wait, name=os.environ["KEY"], daemon=True).start()',
      {
        secrets,
        shareSecrets: true,
      },
    )
    const [branch] = await session.branch(1)
    expect(branch?.missing).toEqual(['not in this branch: thread [redacted:KEY]'])
    expect(JSON.stringify(await branch?.run('1'))).not.toContain(secrets.KEY)
  })
}
