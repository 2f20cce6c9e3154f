import base64
import errno
import json
import os
import tempfile
import unittest

from sandglass_harness.broker import paths, scratch
from sandglass_harness.broker.intake import Intake


class IntakeTest(unittest.TestCase):
    def problem_of(self, path, content="eA==", **request):
        root = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, root)
        roots = scratch.Roots([root])
        self.addCleanup(roots.wipe, 60)
        taken = Intake(root, roots)
        put = {"execution_id": "e1", "mode": 0o644, "offset": 0}
        taken.put({**put, "path": "in the way", "content_base64": base64.b64encode(b"x").decode()})
        taken.put({**put, "path": path, "content_base64": content})
        return taken.problem_of({"execution_id": "e1", "required_secrets": [], "secrets": {}, **request})

    def test_files_that_arrived_are_no_problem(self):
        self.assertIsNone(self.problem_of("a/b"))

    def test_what_is_wrong_with_a_file_is_reported_with_its_path_as_json_writes_it(self):
        """The host redacts secrets as they are and as JSON writes them; Python's repr and OSError write others."""
        rows = {
            "in the way/'s3cret\"\u00fc\n": "Not a directory",
            "../'s3cret\"\u00fc\n": "it is not a plain path below the workspace",
            "\0": "it is not a plain path below the workspace",
            "": "it is not a plain path below the workspace",
            "x" * 256: os.strerror(errno.ENAMETOOLONG),
        }
        for path, reason in rows.items():
            with self.subTest(path):
                want = ("request", f"the file {json.dumps(path, ensure_ascii=False)} could not be put into the workspace: {reason}")
                self.assertEqual(self.problem_of(path), want)

    def test_content_that_is_not_base64_is_reported(self):
        kind, message = self.problem_of("a", content="A")
        self.assertEqual((kind, message.partition(": ")[0]), ("request", 'the file "a" could not be put into the workspace'))

    def test_a_long_path_loses_its_middle_as_every_text_does(self):
        path = "../" + "x" * 4000
        half = paths.MAX_SHOWN // 2
        quoted = f'"{path}"'
        gap = f"\n... {len(quoted) - 2 * half} characters left out ...\n"
        message = self.problem_of(path)[1]
        self.assertIn(f"the file {quoted[:half]}{gap}{quoted[-half:]} could not be put", message)

    def test_missing_secrets_are_listed(self):
        request = {"required_secrets": ["A", "B", "C"], "secrets": {"B": "x"}}
        self.assertEqual(self.problem_of("a", **request), ("secrets", "required secrets are missing: A, C"))
