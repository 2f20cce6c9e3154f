import os
import resource
import tempfile
import unittest
import unittest.mock

from sandglass_harness.broker import control_group, integrity


class GvisorLimitsTest(unittest.TestCase):
    def memory_told_by(self, text):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            return control_group._memory_of_machine(file.name)

    def test_the_memory_of_the_machine_is_that_of_the_group(self):
        self.assertEqual(self.memory_told_by("MemTotal:         655360 kB\nMemFree: 1 kB\n"), 671088640)

    def test_what_is_reported_in_another_way_is_not_believed(self):
        for text in ("", "MemTotal: 5 MB\n", "MemFree: 5 kB\n"):
            self.assertIsNone(self.memory_told_by(text))
        self.assertIsNone(control_group._memory_of_machine("/no/such/file"))

    def test_the_quota_of_the_group_is_what_the_kernel_shows(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertIsNone(control_group.limits_in_gvisor(os.getpid(), root)["cpu_limit"])
            os.mkdir(f"{root}/cpu")
            for quota, found in (("120000", 1.2), ("-1", None)):
                for name, text in (("cfs_quota_us", quota), ("cfs_period_us", "100000")):
                    with open(f"{root}/cpu/cpu.{name}", "w") as file:
                        file.write(f"{text}\n")
                self.assertEqual(control_group.limits_in_gvisor(os.getpid(), root)["cpu_limit"], found)

    def test_trying_whether_processes_are_counted_leaves_none_behind_and_changes_no_limit(self):
        before = resource.getrlimit(resource.RLIMIT_NPROC)
        self.assertEqual(control_group.counts_processes(), os.getuid() != 0)
        self.assertEqual(resource.getrlimit(resource.RLIMIT_NPROC), before)
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    def test_a_limit_that_cannot_be_set_ends_the_process_that_tried(self):
        came_back, tell = os.pipe()
        with unittest.mock.patch.object(resource, "setrlimit", side_effect=ValueError):
            pid = os.getpid()
            try:
                self.assertFalse(control_group.counts_processes())
            finally:
                if os.getpid() != pid:
                    os.write(tell, b"x")
                    os._exit(1)
        os.close(tell)
        with open(came_back, "rb") as file:
            self.assertEqual(file.read(), b"")

    @unittest.skipUnless(os.getuid() == 0, "only root can become the other user whose processes are counted")
    def test_processes_of_others_than_root_are_counted(self):
        pid = os.fork()
        if pid == 0:
            os.setgid(54321)
            os.setuid(54321)
            os._exit(3 if control_group.counts_processes() else 4)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 3)


class GvisorTest(unittest.TestCase):
    def test_gvisor_is_known_by_the_begin_of_its_log(self):
        for log, expected in (
            (b"<6>[    0.000000] Starting gVisor...\n<6>[    0.5] Gathering forks...\n", True),
            (b"<6>[    1.000000] audit: Starting gVisor\n", False),
            (b"<6>[    1.0] usb\n<6>[    2.0] Starting gVisor...\n", False),
            (b"", False),
        ):
            with self.subTest(log):
                with unittest.mock.patch.object(integrity, "kernel_log", lambda log=log: log):
                    self.assertEqual(integrity._is_gvisor(), expected)


if __name__ == "__main__":
    unittest.main()
