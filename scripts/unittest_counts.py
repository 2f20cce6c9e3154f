"""Runs the unit tests below a folder and ends standard output with their counts as one line of JSON.

unittest's own summary can not be added up: Python 3.12.1 leaves skipped tests out of its total, and each failed
subtest counts there although it is not a test.
"""

import json
import os
import sys
import unittest


class CountingResult(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.started = set()
        self.broken = set()
        self.left_out = set()

    def startTest(self, test):
        super().startTest(test)
        self.started.add(test.id())

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.broken.add(test.id())

    def addError(self, test, err):
        super().addError(test, err)
        self.broken.add(test.id())

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.broken.add(test.id())

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.broken.add(test.id())

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        # A skipped subtest leaves its test running: the test counts by how it ends.
        if not hasattr(test, "test_case"):
            self.left_out.add(test.id())

    def counts(self):
        skipped = self.left_out - self.broken
        passed = self.started - self.broken - skipped
        return {"passed": len(passed), "failed": len(self.broken), "skipped": len(skipped)}


def main(folder, top):
    # PYTHONPATH would be inherited by the processes that tests start.
    sys.path.insert(0, os.getcwd())
    tests = unittest.defaultTestLoader.discover(folder, top_level_dir=top)
    result = unittest.TextTestRunner(verbosity=2, resultclass=CountingResult).run(tests)
    print(json.dumps(result.counts()))


if __name__ == "__main__":
    main(*sys.argv[1:])
