import os
import tempfile
import threading
import unittest

from sandglass_harness.broker.uncollected import Uncollected


class UncollectedTest(unittest.TestCase):
    def setUp(self):
        file = tempfile.TemporaryFile()
        self.addCleanup(file.close)
        self.sockstat = file.fileno()
        self.use(4)

    def use(self, sockets):
        os.pwrite(self.sockstat, b"sockets: used %-8d\nTCP: inuse 0 orphan 0\n" % sockets, 0)

    def test_what_was_there_before_is_normal(self):
        uncollected = Uncollected([], self.sockstat)
        self.assertTrue(uncollected.is_gone(0))
        self.use(2)
        self.assertTrue(uncollected.is_gone(0))

    def test_a_socket_more_is_not_gone(self):
        uncollected = Uncollected([], self.sockstat)
        self.use(5)
        self.assertFalse(uncollected.is_gone(0.01))

    def test_sockets_that_are_closed_since_are_not_normal(self):
        uncollected = Uncollected([], self.sockstat)
        self.assertFalse(uncollected.is_gone(0.01, closed_sockets=2))
        self.use(2)
        self.assertTrue(uncollected.is_gone(0, closed_sockets=2))

    def test_a_list_of_sockets_is_counted(self):
        os.pwrite(self.sockstat, b"Num       RefCount Protocol\n".ljust(80) + b"\n", 0)
        uncollected = Uncollected([], self.sockstat)
        self.assertTrue(uncollected.is_gone(0))
        os.pwrite(self.sockstat, b"\n" * 200, 0)
        self.assertFalse(uncollected.is_gone(0.01))

    def test_the_end_of_the_last_one_is_waited_for(self):
        uncollected = Uncollected([], self.sockstat)
        self.use(400)
        later = threading.Timer(0.02, self.use, [4])
        later.start()
        self.addCleanup(later.join)
        self.assertTrue(uncollected.is_gone(10))

    def test_space_of_a_deleted_file_that_is_open_is_not_free(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as root:
            uncollected = Uncollected([root], self.sockstat)
            with tempfile.TemporaryFile(dir=root) as file:
                os.posix_fallocate(file.fileno(), 0, 64 << 20)
                self.assertFalse(uncollected.is_gone(0.01))


if __name__ == "__main__":
    unittest.main()
