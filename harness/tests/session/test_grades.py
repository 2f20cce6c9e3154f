import unittest

from sandglass_harness.session import grades

from .. import forked

_NATIVE = "import ctypes; libc = ctypes.CDLL(None); thread = ctypes.c_ulong()\nlibc.pthread_create(ctypes.byref(thread), None, libc.pause, None)\n"
_NAMED = _NATIVE + 'libc.pthread_setname_np(thread, b"polars-0")'


def find_after(source, *lost):
    """Returns what grades say after Python that runs in a process of its own, which lost the threads `lost` before."""
    return tuple(forked.call(_find_after, source, lost))


def _find_after(source, lost):
    grades.note_lost(lost)
    exec(source, {})
    return grades.find(), grades.find_deadly()


def _describe_after(source):
    exec(source, {})
    return grades.describe()


class GradeTest(unittest.TestCase):
    maxDiff = None

    def test_threads_of_python_are_not_deadly(self):
        source = "import threading; threading.Thread(target=threading.Event().wait, name='waits', daemon=True).start()"
        self.assertEqual(find_after(source), (["partial", ["thread waits"]], []))

    def test_native_threads_are_deadly_with_their_name_and_without(self):
        self.assertEqual(find_after(_NAMED), (["partial", ["the native thread polars-0"]], ["the native thread polars-0"]))
        unknown = ["native threads of an unknown library"]
        self.assertEqual(find_after(_NATIVE), (["partial", unknown], unknown))

    def test_a_thread_that_has_just_ended_is_none(self):
        source = "import threading\nfor _ in range(200):\n thread = threading.Thread(target=int); thread.start(); thread.join()"
        self.assertEqual(find_after(source), (["whole", []], []))

    def test_the_wire_carries_no_name_of_any_length(self):
        source = "import threading; threading.Thread(target=threading.Event().wait, name='x' * 300_000, daemon=True).start()"
        self.assertLess(len(forked.call(_describe_after, source)["lacks"][0]), 1000)

    def test_what_a_rollback_has_ended_is_lacking_from_then_on(self):
        lost = "the native thread polars-0"
        self.assertEqual(find_after("pass", lost), (["partial", [f"{lost}, lost in an earlier rollback"]], [lost]))
        self.assertEqual(find_after(_NAMED, lost)[1], [lost])


if __name__ == "__main__":
    unittest.main()
