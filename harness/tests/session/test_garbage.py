import gc
import unittest
import weakref

from sandglass_harness.session import garbage

from .. import forked


class Node:
    """Garbage once it is let go: a cycle with a buffer."""

    def __init__(self, size=0):
        self.self, self.data = self, bytearray(size)


def let_go(size=0):
    """Returns a reference to garbage that is in the oldest generation."""
    node = Node(size)
    gc.collect(0), gc.collect(1)
    return weakref.ref(node)


class GarbageTest(unittest.TestCase):
    def test_a_full_collection_sees_frozen_objects_and_a_partial_one_does_not(self):
        def go():
            of_session = garbage.Garbage()
            of_session.freeze()
            ref = let_go()
            of_session.freeze()
            frozen = gc.get_freeze_count()
            partial = [gc.collect(0), gc.collect(1), ref() is None]
            # Python 3.12 freezes immortal objects itself.
            return partial[2], gc.collect() > 0, ref() is None, gc.get_freeze_count() < frozen / 2

        self.assertEqual(forked.call(go), [False, True, True, True])

    def test_a_session_that_never_froze_leaves_the_objects_of_the_zygote_frozen(self):
        def go():
            gc.freeze()
            frozen = gc.get_freeze_count()
            garbage.Garbage().limit(1)
            gc.collect()
            return frozen > 1000, gc.get_freeze_count() == frozen

        self.assertEqual(forked.call(go), [True, True])

    def test_objects_are_collected_before_they_are_frozen_if_the_memory_has_grown(self):
        def go():
            of_session = garbage.Garbage()
            of_session.freeze()
            ref = let_go()
            of_session.freeze()
            kept, large = ref() is not None, bytearray(64 << 20)
            of_session.freeze()
            return kept, len(large) > 0, ref() is None

        self.assertEqual(forked.call(go), [True, True, True])

    def test_garbage_beyond_the_memory_of_a_copy_is_collected_at_once(self):
        def go(copyable):
            of_session = garbage.Garbage()
            of_session.limit(copyable)
            of_session.freeze()
            ref = let_go(64 << 20)
            of_session.make_copyable()
            return ref() is None

        self.assertEqual([forked.call(go, limit) for limit in (1 << 20, 1 << 40, None)], [True, False, False])
