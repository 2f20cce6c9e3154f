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


def _raise_with_some_left(soft, hard):
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    grades.describe()
    grades.describe()
    raised = _limit()
    file_limit.restore()
    return [raised, _limit()]


class FileLimitTest(unittest.TestCase):
    def test_the_limit_is_raised_until_it_is_restored(self):
        self.assertEqual(forked.call(_find_without_descriptors, 64, 128), [{"grade": "whole", "lacks": []}, 128])

    def test_a_few_descriptors_that_are_left_are_not_enough_for_a_copy(self):
        self.assertEqual(forked.call(_raise_with_some_left, 64, 128), [[128, 128], [64, 128]])

    def test_a_limit_that_cannot_be_raised_is_a_reason(self):
        found, limit = forked.call(_find_without_descriptors, 64, 64)
        self.assertEqual((found["grade"], limit), ("none", 64))
        self.assertIn("[Errno 24]", found["lacks"][0])
