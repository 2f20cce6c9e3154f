/**
 * What becomes of 49 kinds of state of a session: in the next cell, and after a rollback. The test runs them on real sessions;
 * docs/sessions.md shows them.
 */
export interface SessionState {
  /** In the words of the docs. */
  readonly kind: string
  /** The cell that makes the state, */
  readonly made: string
  /** the one that uses it in the next cell, or after a rollback, */
  readonly used: string
  /** and its value, as JSON. */
  readonly value: unknown
  /** Changes the state before the cell fails and is rolled back. */
  readonly spoilt: string
  /** What a rollback does with it. */
  readonly rollback: 'works' | 'repaired' | 'told'
  /** Of one that is told as lost: part of what is told, in `missing`, `ended` or the error of its use, */
  readonly told?: RegExp
  /** and the value of its use. Not there: its use raises an error. */
  readonly lostValue?: unknown
}

/** The bytes of a file `f.txt` that cells read and write. */
const FILE = 'open("f.txt", "w").write("0123456789")\n'

export const SESSION_STATES: readonly SessionState[] = [
  // Values of the language.
  works('variables', 'x = [1]', 'x', [1], 'x.append(2)'),
  works('functions', 'n = 1\ndef f(): return n', 'f()', 1, 'def f(): return 9'),
  works('classes', 'class C:\n    size = 1\nc = C()', '[c.size, isinstance(c, C)]', [1, true], 'C.size = 2'),
  works(
    'closures',
    'def make():\n    n = 0\n    def f():\n        nonlocal n\n        n += 1\n        return n\n    return f\nf = make(); f()',
    'f()',
    2,
    'f()',
  ),
  works('generators', 'g = iter(n for n in range(9)); next(g)', 'next(g)', 1, 'next(g)'),
  works('coroutines', 'async def f(): return 5\nc = f()', 'await c', 5, 'c.close()'),
  works(
    'dataclasses',
    'import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\np = P(1)',
    '[p.x, p == P(1)]',
    [1, true],
    'p.x = 2',
  ),
  works(
    'enumerations',
    'import enum\nclass E(enum.Enum):\n    A = 1\ne = E.A',
    '[e is E.A, e.value]',
    [true, 1],
    'e = None',
  ),
  works(
    'pickled functions and classes',
    'import pickle\ndef f(): return 1\nb = pickle.dumps(f)',
    'pickle.loads(b)()',
    1,
    'def f(): return 2',
  ),
  works(
    'the source of functions',
    'import inspect\ndef f(): return 1',
    'inspect.getsource(f).strip()',
    'def f(): return 1',
    'del f',
  ),
  works('weak references', 'import weakref\nclass C: pass\nc = C(); r = weakref.ref(c)', 'r() is c', true, 'del c'),
  works(
    'caches of functools',
    'import functools\nn = 0\n@functools.lru_cache\ndef f():\n    global n\n    n += 1\n    return n\nf()',
    '[f(), n]',
    [1, 1],
    'f.cache_clear(); f()',
  ),
  // What a module or the interpreter keeps.
  works('imported modules', 'import json', 'json.dumps([1])', '[1]', 'import sys; del sys.modules["json"], json'),
  works('changed modules', 'import math; math.tau2 = 1', 'math.tau2', 1, 'math.tau2 = 2'),
  works('`sys.path`', 'import sys; sys.path.append("/mine")', 'sys.path[-1]', '/mine', 'sys.path.pop()'),
  works(
    'the flags of `__future__`',
    'from __future__ import annotations',
    'def f(x: Missing): pass\nf.__annotations__["x"]',
    'Missing',
    '1',
  ),
  works('context variables', 'import contextvars; v = contextvars.ContextVar("v"); v.set(1)', 'v.get()', 1, 'v.set(2)'),
  works(
    'the context of `decimal`',
    'import decimal; decimal.getcontext().prec = 3',
    'str(decimal.Decimal(1) / 3)',
    '0.333',
    'decimal.getcontext().prec = 9',
  ),
  works(
    'the locale',
    'import locale; locale.setlocale(locale.LC_ALL, "C")',
    'locale.setlocale(locale.LC_ALL)',
    'C',
    'locale.setlocale(locale.LC_ALL, "C.UTF-8")',
  ),
  works(
    'filters of warnings',
    'import warnings; warnings.simplefilter("error")',
    'try: warnings.warn("w")\nexcept UserWarning: r = 1\nr',
    1,
    'warnings.resetwarnings()',
  ),
  works(
    'handlers of `logging`',
    'import io, logging; s = io.StringIO(); logging.getLogger("a").addHandler(logging.StreamHandler(s))',
    'logging.getLogger("a").error("e"); s.getvalue()',
    'e\n',
    'logging.getLogger("a").handlers.clear()',
  ),
  // What the process has.
  works(
    'the working directory',
    'import os; os.mkdir("d"); os.chdir("d")',
    'os.path.basename(os.getcwd())',
    'd',
    'os.chdir("/")',
  ),
  works('environment variables', 'import os; os.environ["A"] = "1"', 'os.environ["A"]', '1', 'os.environ["A"] = "2"'),
  works(
    'handlers of signals',
    'import os, signal; got = []; signal.signal(signal.SIGUSR1, lambda *_: got.append(1))',
    'os.kill(os.getpid(), signal.SIGUSR1); got',
    [1],
    'signal.signal(signal.SIGUSR1, signal.SIG_IGN)',
  ),
  repaired(
    'timers',
    'import signal; rang = set(); timers = {signal.ITIMER_REAL: signal.SIGALRM, signal.ITIMER_VIRTUAL: signal.SIGVTALRM, signal.ITIMER_PROF: signal.SIGPROF}\nfor timer, number in timers.items(): signal.signal(number, lambda number, _: rang.add(number)); signal.setitimer(timer, 0.1)',
    'while len(rang) < 3: pass\nlen(rang)',
    3,
    'for timer in timers: signal.setitimer(timer, 0)',
  ),
  works('random bytes of the system', 'import os; a = os.urandom(8)', 'os.urandom(8) != a', true, 'a = None'),
  repaired(
    '`random` with a seed',
    'import random; random.seed(7); random.random();',
    'round(random.random(), 6)',
    0.150849,
    'random.random()',
  ),
  {
    kind: 'the process id',
    made: 'import os; pid = os.getpid()',
    used: 'os.kill(os.getpid(), 0); pid == os.getpid()',
    value: true,
    spoilt: 'pid = 0',
    rollback: 'told',
    told: /the process id changes with each rollback and branch: a stored one is stale/,
    lostValue: false,
  },
  // Files and what is like them.
  repaired(
    'files that are read',
    `${FILE}f = open("f.txt", "rb", buffering=0); f.read(3)`,
    'f.read(3).decode()',
    '345',
    'f.read()',
  ),
  repaired(
    'files that are written',
    'f = open("f.txt", "w"); f.write("ab"); f.flush()',
    'f.write("c"); f.close(); open("f.txt").read()',
    'abc',
    'f.write("zzzz"); f.flush()',
  ),
  repaired(
    'files that are appended to',
    `${FILE}f = open("f.txt", "a")`,
    'f.write("c"); f.close(); open("f.txt").read()',
    '0123456789c',
    'f.write("zzzz"); f.flush()',
  ),
  repaired(
    'temporary files',
    'import tempfile; f = tempfile.TemporaryFile(); f.write(b"ab"); f.flush()',
    'f.seek(0); f.read().decode()',
    'ab',
    'f.write(b"zz"); f.flush()',
  ),
  told(
    'files that are written over',
    `${FILE}f = open("f.txt", "r+b", buffering=0)`,
    'f.read(3).decode()',
    '012',
    'f.write(b"XX")',
    /f\.txt: overwritten content is not restored/,
    'XX2',
  ),
  repaired(
    'locks of `flock` and `lockf`',
    `${FILE}import fcntl, subprocess, sys; f, g = open("f.txt", "r+"), open("g.txt", "w"); fcntl.lockf(f, fcntl.LOCK_EX); fcntl.flock(g, fcntl.LOCK_EX)`,
    `taking = """
import fcntl
for name, lock in (("f.txt", fcntl.lockf), ("g.txt", fcntl.flock)):
    try: lock(open(name, "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB); print(name)
    except BlockingIOError: print("locked")
"""
subprocess.run([sys.executable, "-c", taking], stdout=-1, text=True).stdout`,
    'locked\nlocked\n',
    'fcntl.lockf(f, fcntl.LOCK_UN); fcntl.flock(g, fcntl.LOCK_UN)',
  ),
  told(
    'shared memory',
    'import mmap; m = mmap.mmap(-1, 2); m[:] = b"ab"',
    'm[:].decode()',
    'ab',
    'm[:] = b"zz"',
    /shared memory is not restored/,
    'zz',
  ),
  works(
    'connections of SQLite between transactions',
    'import sqlite3; db = sqlite3.connect("a.db"); db.execute("create table t (n)"); db.commit()',
    'db.execute("insert into t values (1)"); db.commit(); db.execute("select count(*) from t").fetchone()[0]',
    1,
    'db.close()',
  ),
  works(
    'connections of SQLite in WAL mode',
    'import sqlite3; db = sqlite3.connect("a.db"); db.execute("pragma journal_mode = wal"); db.execute("create table t (n)"); db.commit()',
    'db.execute("insert into t values (1)"); db.commit(); db.execute("select count(*) from t").fetchone()[0]',
    1,
    'db.execute("insert into t values (2)")',
  ),
  told(
    'transactions of SQLite',
    'import sqlite3; db = sqlite3.connect("a.db"); db.execute("create table t (n)"); db.execute("insert into t values (1)");',
    'db.commit(); db.execute("select n from t").fetchall()',
    [[1]],
    'db.rollback()',
    /lost: the SQLite transaction on a\.db/,
  ),
  told(
    'pipes',
    'import os; r, w = os.pipe(); os.write(w, b"ab")',
    'os.read(r, 2).decode()',
    'ab',
    'os.read(r, 1)',
    /pipes and sockets are closed/,
    '',
  ),
  told(
    'sockets',
    'import socket; a, b = socket.socketpair(); a.send(b"ab")',
    'b.recv(2).decode()',
    'ab',
    'b.recv(1)',
    /pipes and sockets are closed/,
    '',
  ),
  // Threads and processes.
  told(
    'threads',
    'import threading; stop = threading.Event(); t = threading.Thread(target=stop.wait, name="waits", daemon=True); t.start()',
    't.is_alive()',
    true,
    'stop.set()',
    /lost: thread waits/,
    false,
  ),
  works(
    'locks and queues',
    'import queue, threading; lock = threading.Lock(); lock.acquire(); q = queue.Queue(); q.put(1)',
    '[lock.locked(), q.get(timeout=5)]',
    [true, 1],
    'lock.release(); q.get()',
  ),
  repaired(
    'thread pools',
    'from concurrent.futures import ThreadPoolExecutor; pool = ThreadPoolExecutor(2); list(pool.map(abs, [-1]))',
    'list(pool.map(abs, [-3]))',
    [3],
    'pool.shutdown()',
  ),
  told(
    'process pools',
    'import multiprocessing; from concurrent.futures import ProcessPoolExecutor; pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")); pool.submit(abs, -1).result()',
    'pool.submit(abs, -3).result()',
    3,
    'pool.shutdown()',
    /a process pool: its processes ended/,
  ),
  told(
    'programs that run',
    'import subprocess; p = subprocess.Popen(["sleep", "60"])',
    'p.poll()',
    null,
    '1',
    /sleep/,
    -9,
  ),
  repaired(
    'programs that have ended',
    'import os, subprocess; p = subprocess.Popen(["sh", "-c", "exit 3"]); os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT);',
    'p.wait()',
    3,
    'p.wait()',
  ),
  // The signal wakes the loop by a socket of its own.
  repaired(
    'event loops',
    'import asyncio, os, signal; loop = asyncio.new_event_loop(); loop.add_signal_handler(signal.SIGUSR1, loop.stop)',
    'loop.call_soon(os.kill, os.getpid(), signal.SIGUSR1); loop.run_forever(); loop.is_closed()',
    false,
    'loop.close()',
  ),
  repaired(
    'tasks of the event loop',
    'import asyncio, os, signal\nrang = asyncio.Event()\nasync def f():\n    await rang.wait()\n    return 5\nt = asyncio.create_task(f())\nt.get_loop().add_signal_handler(signal.SIGUSR1, rang.set)\nawait asyncio.sleep(0)',
    'os.kill(os.getpid(), signal.SIGUSR1); await t',
    5,
    't.get_loop().close()',
  ),
  told(
    'servers of asyncio',
    'import asyncio; server = await asyncio.start_unix_server(lambda reader, writer: writer.close(), "socket")',
    'await asyncio.sleep(0.01); server.is_serving()',
    true,
    'server.close()',
    /a server of asyncio is closed/,
    false,
  ),
]

function works(kind: string, made: string, used: string, value: unknown, spoilt: string): SessionState {
  return { kind, made, used, value, spoilt, rollback: 'works' }
}

function repaired(kind: string, made: string, used: string, value: unknown, spoilt: string): SessionState {
  return { kind, made, used, value, spoilt, rollback: 'repaired' }
}

function told(
  kind: string,
  made: string,
  used: string,
  value: unknown,
  spoilt: string,
  what: RegExp,
  ...lost: [] | [unknown]
): SessionState {
  const lostValue = lost.length === 0 ? {} : { lostValue: lost[0] }
  return { kind, made, used, value, spoilt, rollback: 'told', told: what, ...lostValue }
}
