import os
import resource
import unittest

from sandglass_harness.session import file_limit, grades

from .. import forked


def _use_all():
    try:
        while True:
            os.open(os.devnull, os.O_RDONLY)
    except OSError:
        pass


def _limit():
    return resource.getrlimit(resource.RLIMIT_NOFILE)


def _find_without_descriptors(soft, hard):
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    _use_all()
    try:
        found = grades.describe()
        return [found, _limit()[0]]
    finally:
        file_limit.restore()
        assert _limit() == (soft, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        os.closerange(20, soft)  # for the answer of the test


class FileLimitTest(unittest.TestCase):
    def test_the_limit_is_raised_until_it_is_restored(self):
        self.assertEqual(forked.call(_find_without_descriptors, 64, 128), [{"grade": "whole", "lacks": []}, 128])

    def test_a_limit_that_cannot_be_raised_is_a_reason(self):
        found, limit = forked.call(_find_without_descriptors, 64, 64)
        self.assertEqual((found["grade"], limit), ("none", 64))
        self.assertIn("[Errno 24]", found["lacks"][0])

    def test_another_error_raises_no_limit(self):
        def fail():
            raise PermissionError

        with self.assertRaises(PermissionError):
            file_limit.call_with_descriptors(fail)
        self.assertIsNone(file_limit._of_cells)
