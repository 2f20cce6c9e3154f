import os
import tempfile
import time
import unittest

from sandglass_harness.broker.scratch import Roots


@unittest.skipUnless(os.geteuid() == 0, "only root can give a directory to another user")
class ForeignRootsTest(unittest.TestCase):
    """A directory of another user, as the volume of a pod is."""

    def test_it_is_emptied_and_its_times_are_those_of_the_wipe(self):
        with tempfile.TemporaryDirectory() as root:
            os.chown(root, 1, 1)
            os.chmod(root, 0o777)
            roots = Roots([root])
            try:
                with open(f"{root}/left", "w") as file:
                    file.write("x")
                os.utime(root, (12, 34))
                before = time.time() - 1
                self.assertTrue(roots.wipe(5))
                self.assertEqual(os.listdir(root), [])
                found = os.stat(root)
                self.assertGreater(min(found.st_mtime, found.st_atime), before)
                os.utime(root, (12, 34))  # nothing was left, but the times were changed
                self.assertTrue(roots.wipe(5))
                self.assertGreater(os.stat(root).st_mtime, before)
            finally:
                roots.close()


if __name__ == "__main__":
    unittest.main()
