import os
import signal
import sys
import tempfile
import unittest

from .rollback import after_rollback


class MendTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.path = os.path.join(holder.name, "a.txt")

    def write(self, text):
        with open(self.path, "w") as file:
            file.write(text)

    def read(self):
        with open(self.path) as file:
            return file.read()

    def check(self, before, bad, after, want, words=(), lacks=()):
        got, said, grade = after_rollback([before] if isinstance(before, str) else before, bad, [after] if isinstance(after, str) else after)
        self.assertEqual((got, said, grade), ([want] if isinstance(want, str) else want, list(words), ["partial" if lacks else "whole", list(lacks)]))

    def test_a_file_is_read_on_where_it_was(self):
        self.write("".join(f"line {n}\n" for n in range(9)))
        self.check(f"f = open({self.path!r}, 'rb', buffering=0); f.readline()", "f.read()", "f.readline()", "b'line 1\\n'")

    def test_a_file_is_written_on_where_it_was(self):
        self.check(f"f = open({self.path!r}, 'w'); f.write('kept '); f.flush()", "f.write('x' * 99); f.flush()", "f.write('more'); f.close()", [None], ())
        self.assertEqual(self.read(), "kept more")

    def test_what_was_written_and_not_flushed_is_written_once(self):
        self.check(f"f = open({self.path!r}, 'w'); f.write('kept ')", "f.write('x'); f.close()", "f.write('more'); f.close()", [None])
        self.assertEqual(self.read(), "kept more")

    def test_a_file_that_is_appended_to(self):
        self.write("old ")
        self.check(f"f = open({self.path!r}, 'a'); f.write('kept '); f.flush()", "f.write('x'); f.flush()", "f.write('more'); f.close()", [None])
        self.assertEqual(self.read(), "old kept more")

    def test_what_was_appended_between_two_cells_stays_and_is_written_after(self):
        for mode, sees in (("a", "old kept late more"), ("w", "kept late more")):
            with self.subTest(mode):
                self.write("old ")
                before = f"f = open({self.path!r}, {mode!r}); f.write('kept '); f.flush()"
                _, words, _ = after_rollback([before], "f.write('bad'); f.flush()", ["f.write('more'); f.close()"], "f.write('late '); f.flush()")
                self.assertEqual((self.read(), words), (sees, []))

    def test_what_another_process_can_have_appended_stays_and_is_told(self):
        self.write("old ")
        before = f"f = open({self.path!r}, 'a'); g = open({self.path!r}, 'a'); r = open({self.path!r})"
        got, words, _ = after_rollback([before], "f.write('new '); f.flush()", ["r.read()"], removes=False)
        self.assertEqual((got, words), (["'old new '"], ["a.txt: what was appended stays"]))
        # Two descriptors of one file are one file.
        got, words, _ = after_rollback([before], "f.write('bad '); f.flush()", ["r.read()"])
        self.assertEqual((got, words), (["'old new '"], []))
        # Nothing to tell: the cell left the file as it was.
        got, words, _ = after_rollback([before], "1", ["r.read()"], between="g.write('x'); g.flush()", removes=False)
        self.assertEqual((got, words), (["'old new x'"], []))

    def test_what_was_written_over_is_told(self):
        self.write("0123456789")
        before = f"f = open({self.path!r}, 'r+b', buffering=0)"
        self.check(before, "f.write(b'XX')", "f.read()", "b'XX23456789'", ["a.txt: overwritten content is not restored"])
        self.check(before, "f.truncate(3)", "f.read()", "b'XX2'", ["a.txt: the file is shorter than it was"])

    def test_what_was_written_over_within_a_tick_of_the_clock_of_files_is_told(self):
        for mode in ("r+b", "ab"):
            with self.subTest(mode):
                self.write("0123456789")
                before = f"import os; f = open({self.path!r}, {mode!r}, buffering=0); o = os.fstat(f.fileno())"
                bad = f"open({self.path!r}, 'r+').write('X'); os.utime({self.path!r}, ns=(o.st_atime_ns, o.st_mtime_ns))"
                self.check(before, bad, [f"open({self.path!r}).read()"], ["'X123456789'"], ["a.txt: overwritten content is not restored"])

    def test_what_others_wrote_over_between_two_cells_is_not_told(self):
        for text in ("other text", "a longer text than before"):
            for mode in ("r+b", "ab"):
                with self.subTest(mode, text=text):
                    self.write("0123456789")
                    before = f"f = open({self.path!r}, {mode!r}, buffering=0)"
                    _, words, _ = after_rollback([before], "1", [], f"open({self.path!r}, 'w').write({text!r})")
                    self.assertEqual((self.read(), words), (text, []))

    def test_temporary_files_without_a_name(self):
        self.check("import tempfile; t = tempfile.TemporaryFile(); t.write(b'ab'); t.flush()", "t.seek(0); t.write(b'abXX'); t.flush()",
                   "t.seek(0); t.read()", "b'ab'")

    def test_locks_on_files_stay(self):
        self.write("text")
        ofd = "import struct; fcntl.ofd = lambda f, way: fcntl.fcntl(f, fcntl.F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_UNLCK if way & fcntl.LOCK_UN else fcntl.F_WRLCK, 0, 0, 0, 0))"
        other = f"import fcntl; {ofd}; fcntl.{{}}(open({self.path!r}, 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        probe = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {other!r}], stderr=subprocess.DEVNULL).returncode"
        for way in ("flock", "lockf", "ofd"):
            for bad in ("f.read()", f"fcntl.{way}(f, fcntl.LOCK_UN)"):
                with self.subTest(way, bad=bad):
                    before = f"import fcntl; {ofd}; f = open({self.path!r}, 'r+'); fcntl.{way}(f, fcntl.LOCK_EX)"
                    self.check(before, bad, [probe.format(way), "f.read()", "f.close()", probe.format(way)], ["1", "'text'", None, "0"])

    def test_a_lock_of_the_bad_cell_ends_with_it(self):
        other = f"import fcntl; fcntl.flock(open({self.path!r}), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        probe = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {other!r}], stderr=subprocess.DEVNULL).returncode"
        self.check(f"import fcntl; f = open({self.path!r}, 'w')", "fcntl.flock(f, fcntl.LOCK_EX)", [probe], ["0"])

    def test_random_numbers_go_on(self):
        import random

        random.seed(7)
        want = [random.random() for _ in range(2)]
        self.check("import random; random.seed(7); random.random()", "random.random()", "random.random()", repr(want[1]))

    def test_a_timer_of_a_cell_goes_on(self):
        self.check(
            "import signal; rang = []; signal.signal(signal.SIGVTALRM, lambda *_: rang.append(1)); signal.setitimer(signal.ITIMER_VIRTUAL, 0.02)",
            "signal.setitimer(signal.ITIMER_VIRTUAL, 0)",
            "while not rang: pass\nrang",
            "[1]",
        )

    def test_signal_handlers_stay(self):
        self.check("import os, signal; got = []; signal.signal(signal.SIGUSR1, lambda *_: got.append(1))",
                   "signal.signal(signal.SIGUSR1, signal.SIG_IGN)", "os.kill(os.getpid(), signal.SIGUSR1); got", "[1]")

    def test_a_process_that_was_ended_is_told_as_killed(self):
        killed = str(-signal.SIGKILL)
        before = "import subprocess, sys; p = subprocess.Popen(['sleep', '60'])"
        self.check(before, "p.kill(); p.wait()", ["p.poll()", "p.returncode"], [killed, killed])
        self.check(before, "p.kill(); p.wait()", ["p.wait()"], [killed])
        self.check(before, "p.kill(); p.wait()", ["p.wait(timeout=5)"], [killed])

    def test_a_process_that_had_ended_keeps_its_exit_code(self):
        before = "import os, subprocess; p = subprocess.Popen(['sh', '-c', 'exit 3']); os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)"
        self.check(before, "1", ["p.wait()"], ["3"])

    def test_new_processes_work_after_a_rollback(self):
        self.check("import subprocess; p = subprocess.Popen(['sleep', '60'])", "p.kill(); p.wait()",
                   "subprocess.run(['sh', '-c', 'exit 4']).returncode", "4")

    def test_processes_of_multiprocessing_are_told_as_killed(self):
        self.check("import multiprocessing, time; p = multiprocessing.get_context('fork').Process(target=time.sleep, args=(60,)); p.start()",
                   "p.kill(); p.join()", ["p.is_alive(), p.exitcode", "p.join()"], [f"(False, {-signal.SIGKILL})", None])

    def test_thread_pools_work_on(self):
        before = "from concurrent.futures import ThreadPoolExecutor; pool = ThreadPoolExecutor(2); list(pool.map(abs, range(9)))"
        idle = "import time; from sandglass_harness.session import grades; end = time.monotonic() + 10"
        wait = "while grades.find()[0] != grades.WHOLE and time.monotonic() < end: time.sleep(0.001)"
        self.check([before, f"{idle}\n{wait}"], "list(pool.map(abs, range(9)))", ["list(pool.map(abs, [-3]))", "pool.shutdown()"], ["[3]", None])

    def test_a_thread_pool_that_works_is_told_as_lost(self):
        got, words, grade = after_rollback(
            ["import threading; from concurrent.futures import ThreadPoolExecutor; pool = ThreadPoolExecutor(1); begun = threading.Event(); "
             "never = threading.Event(); task = pool.submit(lambda: (begun.set(), never.wait())); begun.wait()"],
            "never.set()", ["pool.submit(abs, -3).result(5)"],
        )
        self.assertEqual((got, grade[0]), (["3"], "partial"))
        self.assertEqual(words, ["lost: thread ThreadPoolExecutor-0_0"])

    def test_a_process_pool_raises_where_it_would_wait(self):
        got, words, grade = after_rollback(
            ["from concurrent.futures import ProcessPoolExecutor; import multiprocessing; "
             "pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context('fork')); pool.submit(abs, -1).result()"],
            "import os, signal\nfor p in pool._processes: os.kill(p, signal.SIGKILL)",
            ["pool.submit(abs, -1).result()"],
        )
        self.assertEqual(got, ["BrokenProcessPool: its processes ended when the session was rolled back"])
        self.assertIn("a process pool: its processes ended when the session was rolled back", words)
        self.assertEqual(grade[0], "partial")

    def test_a_pool_of_multiprocessing_raises_where_it_would_wait(self):
        got, words, grade = after_rollback(
            ["import multiprocessing; pool = multiprocessing.get_context('fork').Pool(1); pool.map(abs, [-1])"],
            "pool.terminate()", ["pool.map(abs, [-1])"],
        )
        self.assertEqual(got, ["ValueError: Pool not running"])
        self.assertIn("a process pool: its processes ended when the session was rolled back", words)
        self.assertEqual(grade[0], "partial")

    def test_tasks_of_an_event_loop_go_on(self):
        self.check(
            ["import asyncio\nasync def f():\n    await asyncio.sleep(0.02)\n    return 'done'",
             "task = asyncio.create_task(f())\nawait asyncio.sleep(0)"],
            "await task", ["await task", "await asyncio.to_thread(abs, -3)"], ["'done'", "3"],
        )

    def test_a_program_of_asyncio_is_told_as_killed(self):
        before = ["import asyncio; p = await asyncio.create_subprocess_exec('sleep', '60')", "task = asyncio.create_task(p.wait())\nawait asyncio.sleep(0)"]
        after = [*2 * ["await asyncio.wait_for(p.wait(), 5)"], "await asyncio.wait_for(task, 5)",
                 "q = await asyncio.create_subprocess_exec('sh', '-c', 'exit 3'); await asyncio.wait_for(q.wait(), 5)"]
        killed = str(-signal.SIGKILL)
        self.assertEqual(after_rollback(before, "p.kill(); await p.wait()", after)[0], [killed, killed, killed, "3"])

    def test_a_process_of_multiprocessing_that_has_ended_or_not_begun_can_be_used(self):
        self.check("import multiprocessing, os; fork = multiprocessing.get_context('fork'); later, p = [fork.Process(target=os._exit, args=(3,)) for _ in '12']\n"
                   "p.start(); p.join()", "p.close()", ["p.is_alive(), p.exitcode", "later.start(); later.join(); later.exitcode"], ["(False, 3)", "3"])

    def test_a_loop_of_a_cell_goes_on(self):
        self.check("import asyncio; loop = asyncio.new_event_loop(); loop.run_until_complete(asyncio.sleep(0))",
                   "loop.run_until_complete(asyncio.sleep(0)); loop.close()", "loop.run_until_complete(asyncio.sleep(0.001, 5))", "5")

    def test_a_connection_in_a_transaction_does_no_damage(self):
        got, words, grade = after_rollback(
            [f"import sqlite3; db = sqlite3.connect({self.path!r}); db.execute('create table t (n)'); db.commit()",
             "db.execute('insert into t values (1)')"],
            "db.executemany('insert into t values (?)', [(n,) for n in range(999)]); db.commit()",
            ["db.commit()", "db.close()", f"db = sqlite3.connect({self.path!r}); db.execute('select count(*) from t').fetchone()",
             "db.execute('insert into t values (1)'); db.commit(); db.execute('pragma integrity_check').fetchone()"],
        )
        self.assertEqual(grade, ["partial", ["the SQLite transaction on a.txt"]])
        self.assertEqual(words, [
            "lost: the SQLite transaction on a.txt",
            "a.txt: SQLite was in a transaction there; close the connection, and connect again",
        ])
        self.assertRegex(got[0], "ProgrammingError")
        self.assertEqual(got[2:], ["(1000,)", "('ok',)"])

    def test_an_idle_connection_works_on(self):
        self.check([f"import sqlite3; db = sqlite3.connect({self.path!r}); db.execute('create table t (n)'); db.commit()"],
                   "db.execute('insert into t values (1)'); db.commit()",
                   "db.execute('insert into t values (1)'); db.commit(); db.execute('select count(*) from t').fetchone()", "(2,)",
                   ["a.txt: overwritten content is not restored"])

    def test_shared_memory_is_told(self):
        self.check("import mmap; m = mmap.mmap(-1, 10)", "m[:2] = b'ab'", "bytes(m[:2])", "b'ab'", ["shared memory is not restored: unnamed memory"])

    def test_a_lost_thread_is_told(self):
        before = "import threading; stop = threading.Event(); t = threading.Thread(target=stop.wait, name='worker', daemon=True); t.start()"
        self.check(before, "stop.set()", "t.is_alive()", "False", ["lost: thread worker"], ["thread worker"])


if __name__ == "__main__":
    unittest.main()
