"""A separate directory for each test of the directories of a sandbox."""

import os
import tempfile
import unittest

from sandglass_harness.broker.scratch import Roots


def remove(path):
    """shutil.rmtree gives up on thousands of nested directories."""
    roots = Roots([path])
    roots.wipe(60)
    roots.close()
    os.rmdir(path)


class ScratchTestCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.root = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        os.chmod(self.root, 0o755)
        self.addCleanup(remove, self.root)

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def write(self, path, content=b"x"):
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with open(self.path(path), "wb") as file:
            file.write(content)
