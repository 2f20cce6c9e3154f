import { expect, test } from 'vitest'
import type { CellResult, Session, Workspace } from '../../src/index.ts'

/** What a rollback, a restore and a branch do with files that cells have open. @param workspace gives an open workspace without activities. */
export function describeOpenFiles(workspace: () => Workspace): void {
  const contentOf = async (path: string): Promise<string> => (await workspace().exec('cat', [path])).stdout
  const append = async (path: string): Promise<unknown> => workspace().exec('sh', ['-c', `echo theirs >> ${path}`])

  test.for(['a', 'w'])(
    'a rollback keeps what a program appended before the cell to a file that was opened with %s',
    async (mode) => {
      const path = `before-${mode}.txt`
      await using session = await workspace().session()
      await session.run(write('one', `log = open("${path}", "${mode}")`))
      await append(path)
      const broken = await session.run('import os; os._exit(1)')
      expect(broken).toMatchObject({ state: 'rolled-back', missing: [] })
      expect(await contentOf(path)).toBe('one\ntheirs\n')
    },
  )

  test('a rollback removes what the cell appended, and nothing that was appended before it', async () => {
    await using session = await workspace().session()
    await session.run(write('one', 'log = open("cell.txt", "a")'))
    await append('cell.txt')
    const broken = await crash(session, 'cell')
    expect(broken).toMatchObject({ state: 'rolled-back', missing: [] })
    await session.run(write('two'))
    expect(await contentOf('cell.txt')).toBe('one\ntheirs\ntwo\n')
  })

  test('a rollback keeps what threads and programs of the session appended before the cell', async () => {
    await using session = await workspace().session()
    const thread = `def late():
    begin.wait()
    for file in (log, new): file.write("thread\\n"); file.flush()
worker = threading.Thread(target=late); worker.start()`
    await session.run(
      `import os, subprocess, threading
log, new, begin = open("own.txt", "a"), open("own-new.txt", "w"), threading.Event()
${thread}
program = subprocess.Popen(["sh", "-c", "while [ ! -e go ]; do sleep 0.01; done; echo program"], stdout=log)
alarm = threading.Timer(0.05, begin.set); alarm.start()`,
    )
    const texts = (): Promise<string[]> => Promise.all([contentOf('own.txt'), contentOf('own-new.txt')])
    await expect.poll(texts).toEqual(['thread\n', 'thread\n'])
    await workspace().exec('touch', ['go'])
    await expect.poll(texts).toEqual(['thread\nprogram\n', 'thread\n'])
    expect(await crash(session, 'cell')).toMatchObject({ state: 'rolled-back' })
    await session.run('for file in (log, new): file.write("two\\n"); file.close()')
    expect(await texts()).toEqual(['thread\nprogram\ntwo\n', 'thread\ntwo\n'])
  })

  test('threads that never stop writing end with their cell, and a rollback restores the files as they were before it', async () => {
    await using session = await workspace().session()
    await session.run(`import itertools, os, signal, threading
log, over, turns = open("threads.txt", "a"), open("threads-over.txt", "w"), [0]
for file in (log, over): file.write("one\\n"); file.flush()`)
    const look = async (): Promise<unknown[]> => [
      (await session.run('[turns, log.tell(), over.tell(), threading.active_count()]')).value,
      await contentOf('threads.txt'),
      await contentOf('threads-over.txt'),
    ]
    const left: string[] = []
    for (const end of WRITING_ENDS) {
      const cancelling = new AbortController()
      const options = { onError: 'rollback', signal: cancelling.signal, onLog: () => cancelling.abort() } as const
      const broken = await session.run(`${WRITING}\n${end}`, options)
      expect({ end, ...statesOf(broken) }).toEqual({ end, state: 'rolled-back', missing: [] })
      left.push(await contentOf('threads-new.txt'))
      expect([end, await look()]).toEqual([end, [[[0], 4, 4, 1], 'one\n', 'one\n']])
    }
    // A file that the cell opened stays as it is, and nobody writes to it any more.
    for (const text of left) expect(text).toMatch(/^(thread\n){10,}t?h?r?e?a?d?$/)
    expect(await contentOf('threads-new.txt')).toBe(left.at(-1))
    await using other = await workspace().session()
    await other.run('0')
    const beside = await session.run(`${WRITING}\nos._exit(1)`)
    expect(statesOf(beside)).toEqual({
      state: 'rolled-back',
      missing: ['threads.txt: what was appended stays', 'threads-over.txt: what was appended stays'],
    })
    const [state, appended] = await look()
    expect(state).toEqual([[0], 4, 4, 1])
    expect(appended).toMatch(/^one\n(thread\n){10,}t?h?r?e?a?d?$/)
    await session.run('log.write("two\\n"); log.flush()')
    expect(await contentOf('threads.txt')).toBe(`${String(appended)}two\n`)
  })

  test('what others can have appended during the cell stays, and the result names the file', async () => {
    await using session = await workspace().session()
    await using other = await workspace().session()
    const open = 'log = open("others.txt", "a")'
    await session.run(write('one', open))
    await other.run(write('neighbour', open))
    const broken = await crash(session, 'cell', () => append('others.txt'))
    const missing = ['others.txt: what was appended stays']
    expect(broken).toMatchObject({ state: 'rolled-back', missing })
    expect(await contentOf('others.txt')).toBe('one\nneighbour\ncell\ntheirs\n')
    await other.close()
    // A program that ended during the cell counts, too.
    const beside = await crash(session, 'cell', () => append('others.txt'))
    expect(beside).toMatchObject({ state: 'rolled-back', missing })
    expect(await contentOf('others.txt')).toBe('one\nneighbour\ncell\ntheirs\ncell\ntheirs\n')
  })

  test('a restore removes nothing from files, and names those that were appended to', async () => {
    await using session = await workspace().session()
    await session.run(write('one', 'log = open("restored.txt", "a"); new = open("new.txt", "w")'))
    const checkpoint = await session.checkpoint()
    await session.run(`${write('two')}\nnew.write("two\\n"); new.flush()`)
    await append('restored.txt')
    const { missing } = await session.restore(checkpoint)
    expect(missing).toEqual([
      'restored.txt: what was appended stays',
      'new.txt: what was appended stays',
      'files, shared memory and the effects of host tools were not rolled back',
    ])
    expect(await contentOf('restored.txt')).toBe('one\ntwo\ntheirs\n')
    expect(await contentOf('new.txt')).toBe('two\n')
  })

  test('a process that ends between two cells leaves what was appended since the last one, and says so', async () => {
    await using session = await workspace().session()
    await session.run(write('one', 'import os, threading\nlog = open("between.txt", "a")'))
    await session.run('def end(): log.write("late\\n"); log.flush(); os._exit(1)\nthreading.Timer(0.3, end).start()')
    await expect.poll(() => contentOf('between.txt')).toBe('one\nlate\n')
    const said: string[] = []
    const tell = async (): Promise<string[]> => {
      const { warnings, missing } = await session.run('')
      said.push(...warnings.map(({ message }) => message), ...missing)
      return said
    }
    const told = expect.stringContaining('between.txt: what was appended stays') as string
    await expect.poll(tell).toContainEqual(told)
    expect(await contentOf('between.txt')).toBe('one\nlate\n')
  })

  test('branches append to the same file, and the rollback of one leaves the lines of the others', async () => {
    await using session = await workspace().session()
    await session.run(write('one', 'log = open("branches.txt", "a")'))
    const [first, second] = await session.branch(2)
    await first?.run(write('first'))
    await crash(second as Session, 'second')
    await first?.run(write('more'))
    await second?.run(write('again'))
    const broken = await crash(second as Session, 'end')
    expect(broken.missing).toEqual(['branches.txt: what was appended stays'])
    await Promise.all([first?.close(), second?.close()])
    expect(await contentOf('branches.txt')).toBe('one\nfirst\nsecond\nmore\nagain\nend\n')
    // Alone again, a rollback knows whose it is.
    expect(await crash(session, 'alone')).toMatchObject({ state: 'rolled-back', missing: [] })
    expect(await contentOf('branches.txt')).toBe('one\nfirst\nsecond\nmore\nagain\nend\n')
  })

  test('a rollback leaves a file as it is that its cell has rewritten or patched, and the result names it', async () => {
    await using session = await workspace().session()
    await session.run(`import os
again, other, head = open("again.txt", "w+"), open("other.txt", "a"), open("head.bin", "w+")
large, added = open("large.txt", "w+"), open("added.txt", "w+")
for file in (again, other, head): file.write("0 one\\n"); file.flush()
for file in (large, added): file.write("x" * 200_000); file.flush()`)
    const checkpoint = await session.checkpoint()
    const spoil = `again.seek(0); again.truncate(); again.write("another text\\n")
open("other.txt", "w").write("another text\\n")
head.write("two\\n"); head.seek(0); head.write("1"); head.seek(0, 2)
large.write("more"); large.seek(180_000); large.write("patched")
added.write("more")
for file in (again, head, large, added): file.flush()`
    const changed = ['again.txt', 'other.txt', 'head.bin', 'large.txt'].map(
      (name) => `${name}: overwritten content is not restored`,
    )
    const contents = (): Promise<string[]> => Promise.all(['again.txt', 'other.txt', 'head.bin'].map(contentOf))
    const spoilt = ['another text\n', 'another text\n', '1 one\ntwo\n']
    const look = async (): Promise<unknown> =>
      (await session.run('[os.path.getsize(name) for name in ("large.txt", "added.txt")]')).value
    expect(statesOf(await session.run(`${spoil}\nos._exit(1)`))).toEqual({ state: 'rolled-back', missing: changed })
    expect([await contents(), await look()]).toEqual([spoilt, [200_004, 200_000]])
    await session.run('added.write("more"); added.flush()')
    const { missing } = await session.restore(checkpoint)
    expect(missing.slice(0, -1)).toEqual([...changed, 'added.txt: what was appended stays'])
    expect([await contents(), await look()]).toEqual([spoilt, [200_004, 200_004]])
  })

  test('after a rollback and in a branch, descriptors share the positions in files that they shared before', async () => {
    await using session = await workspace().session()
    await session.run(`import os
log = open("dup.txt", "w"); same = os.dup(log.fileno())
log.write("one\\n"); log.flush(); os.write(same, b"two\\n")
first, second = (open("dup.txt", "rb", buffering=0) for _ in range(2))`)
    const use = (
      text: string,
    ): string => `first.read(4); log.write("${text}\\n"); log.flush(); os.write(same, b"again\\n")
[open("dup.txt").read(), first.tell(), second.tell()]`
    expect((await session.run('os.write(same, b"bad"); first.read(); os._exit(1)')).missing).toEqual([])
    const [branch] = await session.branch(1)
    const before = 'one\ntwo\n'
    expect((await session.run(use('three'))).value).toEqual([`${before}three\nagain\n`, 4, 0])
    await session.run('log.truncate(8)')
    expect((await branch?.run(use('branch')))?.value).toEqual([`${before}branch\nagain\n`, 4, 0])
    await branch?.close()
  })

  test('a directory that is read half-way is read on after a rollback', async () => {
    await using session = await workspace().session()
    await session.run(`import os; os.mkdir("many")
for n in range(1500): open(f"many/a name of a file that is long enough to fill a buffer {n}", "w").close()
entries = os.scandir("many"); next(entries)`)
    expect((await session.run('len(list(entries)); os._exit(1)')).missing).toEqual([])
    expect((await session.run('len({each.name for each in entries})')).value).toBe(1499)
  })

  test('files that cannot be opened again, and open files beyond the first 1000, are named', async () => {
    await using session = await workspace().session()
    await session.run('import os, resource; log = open("sealed.txt", "w"); os.chmod("sealed.txt", 0o444)')
    const shared = 'sealed.txt: it cannot be opened again, so copies of the session share its position and locks'
    expect((await session.run('os._exit(1)')).missing).toEqual([shared])
    const limit =
      'most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]; resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))'
    await session.run(`${limit}\nfiles = [open("many.txt", "w") for _ in range(1000)]`)
    expect((await session.run('os._exit(1)')).missing).toEqual([
      shared,
      'descriptors beyond the first 1000: not restored',
    ])
  })

  test('an eventfd that a cell has signalled is named', async () => {
    await using session = await workspace().session()
    await session.run('import os; event = os.eventfd(2)')
    expect((await session.run('os._exit(1)')).missing).toEqual([])
    const { missing } = await session.run('os.eventfd_write(event, 5); os._exit(1)')
    expect(missing).toEqual([expect.stringMatching(/^eventfd \d+: its count is not restored$/)])
  })

  test('a rollback restores files where a test of the cells replaces functions of Python', async () => {
    await using session = await workspace().session()
    await session.run(`import os, socket, unittest.mock
ends = socket.socketpair()
log = open("mocked.txt", "w"); log.write("one\\n"); log.flush()
mocks = [unittest.mock.patch("os.listdir", return_value=[]), unittest.mock.patch("builtins.open", unittest.mock.mock_open())]
for mock in mocks: mock.start()`)
    const { missing } = await session.run(`${write('bad')}; os._exit(1)`)
    expect(missing).toEqual([expect.stringMatching(/^pipes and sockets are closed: socket \d+, socket \d+$/)])
    await session.run(write('two'))
    expect(await contentOf('mocked.txt')).toBe('one\ntwo\n')
    await session.run('ends = socket.socketpair()')
    const [branch] = await session.branch(1)
    await session.run('ends[0].send(b"for the session alone")')
    const read =
      '_ = ends[1].setblocking(False)\ntry: got = ends[1].recv(99).decode()\nexcept OSError: got = "closed"\ngot'
    expect((await branch?.run(read))?.value).not.toBe('for the session alone')
    await branch?.close()
  })

  test('a lock of flock ends when a cell closes its file, also beside a checkpoint', async () => {
    await using session = await workspace().session()
    await session.run(`import fcntl; lock, other = open("closed.lock", "w"), open("kept.lock", "w"); ${lockIt('lock')}`)
    const checkpoint = await session.checkpoint()
    await session.run(`lock.close(); ${lockIt('other')}`)
    expect(await session.run(`again = open("closed.lock", "w"); ${lockIt('again')}`)).toMatchObject({ error: null })
    await session.run('other.close(); taken = open("kept.lock", "w")')
    expect(await session.run(lockIt('taken'))).toMatchObject({ error: null })
    await session.release(checkpoint)
  })

  test('a rollback and a restore lock files as they were', async () => {
    await using session = await workspace().session()
    const tries = async (...paths: string[]): Promise<string> => {
      const code = paths.map(
        (path) => `\ntry: ${lockIt(`open("${path}")`)}; print("free")\nexcept OSError: print("locked")`,
      )
      return (await workspace().exec('python3', ['-c', `import fcntl${code.join('')}`])).stdout
    }
    await session.run(`import fcntl, os; one, two = open("one.lock", "w"), open("two.lock", "w"); ${lockIt('one')}`)
    const checkpoint = await session.checkpoint()
    const broken = await session.run(`fcntl.flock(one, fcntl.LOCK_UN); ${lockIt('two')}; os._exit(1)`)
    expect(broken).toMatchObject({ state: 'rolled-back', missing: [] })
    expect(await tries('one.lock', 'two.lock')).toBe('locked\nfree\n')
    await session.run(`one.close(); ${lockIt('two')}`)
    expect(await tries('one.lock', 'two.lock')).toBe('free\nlocked\n')
    await session.restore(checkpoint)
    expect(await tries('one.lock', 'two.lock')).toBe('locked\nfree\n')
    await session.run('one.close()')
    expect(await tries('one.lock')).toBe('free\n')
  })

  test('a rollback tells a lock that another process has taken meanwhile', async () => {
    await using session = await workspace().session()
    await using other = await workspace().session()
    await other.run('import fcntl; theirs = open("lost.lock", "w")')
    await session.run(`import fcntl; lock = open("lost.lock", "w"); ${lockIt('lock')}`)
    const cancelling = new AbortController()
    const begun = Promise.withResolvers<void>()
    const options = { signal: cancelling.signal, onLog: () => begun.resolve() }
    const cell = session.run('lock.close(); emit_log("begun")\nwhile True: pass', options)
    await begun.promise
    expect(await other.run(lockIt('theirs'))).toMatchObject({ error: null })
    cancelling.abort()
    expect(statesOf(await cell)).toEqual({ state: 'rolled-back', missing: ['lost.lock: the lock is lost'] })
  })

  test('a connection of SQLite in WAL mode works after a rollback, a restore and in branches, with its locks', async () => {
    await using session = await workspace().session()
    await session.run(`import os, sqlite3\n${wal('works.db')}`)
    const insert = 'db.execute("insert into t values (1)"); db.commit()'
    const checkpoint = await session.checkpoint()
    expect(checkpoint).toMatchObject({ grade: 'whole', lacks: [] })
    const broken = await session.run(`${insert}\nos._exit(1)`)
    expect(broken).toMatchObject({ state: 'rolled-back', missing: ['works.db: overwritten content is not restored'] })
    const [branch] = await session.branch(1)
    expect(branch?.missing).toEqual([])
    const many = `for _ in range(50): ${insert}`
    const both = await Promise.all([session.run(many), branch?.run(many)])
    expect(both.map((each) => each?.error)).toEqual([null, null])
    await session.restore(checkpoint)
    // The files of the log stay as long as another process uses them, which it says by its locks.
    const other = `import sqlite3; db = sqlite3.connect("works.db"); ${insert}; db.close()`
    expect((await workspace().exec('python3', ['-c', other])).exitCode).toBe(0)
    await branch?.close()
    expect((await workspace().exec('python3', ['-c', other])).exitCode).toBe(0)
    const after = await session.run(`${insert}\n[os.path.exists("works.db-wal"), *${CHECKED}]`)
    expect(after).toMatchObject({ value: [true, [104], ['ok']], checkpoint: { grade: 'whole' } })
  })

  test('a connection of SQLite whose files a rolled back cell has removed is closed, and the result says what to do', async () => {
    await using session = await workspace().session()
    await session.run(`import os, sqlite3\n${wal('removed.db')}`)
    const broken = await session.run('db.close()\nos._exit(1)')
    expect(broken.missing).toContain(
      'removed.db: SQLite has lost its connection; close the connection, and connect again',
    )
    await checkLost(session, 'removed.db')
  })

  test('a transaction of SQLite in WAL mode is told, and a new connection works beside that of the origin', async () => {
    await using session = await workspace().session()
    const begun = await session.run(`import os, sqlite3\n${wal('begun.db')}\ndb.execute("insert into t values (1)");`)
    expect(begun.checkpoint).toEqual({ grade: 'partial', lacks: ['the SQLite transaction on begun.db'] })
    const [branch] = await session.branch(1)
    const told = 'begun.db: SQLite was in a transaction there; close the connection, and connect again'
    expect(branch?.missing).toEqual(['not in this branch: the SQLite transaction on begun.db', told])
    expect(await branch?.run('db.commit()')).toMatchObject({ error: CLOSED })
    await checkLost(branch as Session, 'begun.db')
    await branch?.close()
    expect(await session.run(`db.commit(); ${CHECKED}`)).toMatchObject({ value: [[1], ['ok']] })
  })

  test('a new connection of SQLite works beside a cursor of the lost one', async () => {
    await using session = await workspace().session()
    await session.run(
      `import os, sqlite3\n${wal('read.db')}\ndb.executemany("insert into t values (?)", [(n,) for n in range(3000)]); db.commit()
cursor = db.execute("select * from t"); cursor.fetchone()`,
    )
    const broken = await session.run('os._exit(1)')
    const told = 'read.db: SQLite was in a transaction there; close the connection, and connect again'
    expect(broken).toMatchObject({ state: 'rolled-back', missing: ['lost: the SQLite transaction on read.db', told] })
    const again = 'db = sqlite3.connect("read.db"); db.execute("select count(*) from t").fetchone()[0]'
    expect(await session.run(again)).toMatchObject({ error: null, value: 3000 })
  })
}

function lockIt(file: string): string {
  return `fcntl.flock(${file}, fcntl.LOCK_EX | fcntl.LOCK_NB)`
}

/** Three threads that write to two files of the session and to one of the cell until they are killed. Each has written ten lines when it ends. */
const WRITING = `turns.append(1)
new, wrote, wait = open("threads-new.txt", "w"), threading.Semaphore(0), threading.Semaphore(0)
def keep():
    for file in itertools.cycle((log, over, new)):
        file.write("thread\\n"); file.flush()
        if file is new: wrote.release()
for _ in range(3): threading.Thread(target=keep).start()
for _ in range(30): wrote.acquire()`
const WRITING_ENDS = [
  'os._exit(1)',
  '1 / 0',
  'os.kill(os.getpid(), signal.SIGKILL)',
  'emit_log("begun"); wait.acquire()',
]

function statesOf({ state, missing }: CellResult): Pick<CellResult, 'state' | 'missing'> {
  return { state, missing }
}

/** Makes a database in WAL mode. */
function wal(name: string): string {
  return `db = sqlite3.connect("${name}"); db.execute("pragma journal_mode = wal"); db.execute("create table t (n)"); db.commit()`
}

const CHECKED = '(db.execute("select count(*) from t").fetchone(), db.execute("pragma integrity_check").fetchone())'

const CLOSED = 'sqlite3.ProgrammingError: Cannot operate on a closed database.'

/** A lost connection of SQLite is closed, and a new one works. */
async function checkLost(session: Session, name: string): Promise<void> {
  expect(await session.run('db.execute("insert into t values (2)")')).toMatchObject({ error: CLOSED })
  const again = await session.run(`old, db = db, sqlite3.connect("${name}"); ${CHECKED}`)
  expect(again).toMatchObject({ error: null, value: [[0], ['ok']] })
}

function write(text: string, before = ''): string {
  return `${before}\nlog.write("${text}\\n"); log.flush()`
}

/** Runs a cell that appends a line, and then ends its process or, after `meanwhile`, is cancelled. */
async function crash(session: Session, text: string, meanwhile?: () => Promise<unknown>): Promise<CellResult> {
  const cancelling = new AbortController()
  const begun = Promise.withResolvers<void>()
  const end = meanwhile === undefined ? 'import os; os._exit(1)' : 'emit_log("begun")\nwhile True: pass'
  const options = { signal: cancelling.signal, onLog: () => begun.resolve() }
  const cell = session.run(`${write(text)}\n${end}`, options)
  if (meanwhile !== undefined) {
    await begun.promise
    await meanwhile()
    cancelling.abort()
  }
  return cell
}
