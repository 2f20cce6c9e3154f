import json
import re
import unittest

from . import checking

PAGE = checking.REPOSITORY / "docs" / "checking.md"
FENCE = re.compile(r"<!-- violation: (\w+) -->\n```python\n(.*?)```", re.DOTALL)
NO_EXAMPLE = {"checker_failed", "preamble_error"}  # no script has them


class PageTest(unittest.TestCase):
    maxDiff = None

    def test_each_example_has_the_violation_that_it_is_there_for(self):
        for code, script in FENCE.findall(PAGE.read_text()):
            with self.subTest(code):
                policy = "strict" if code.startswith("forbidden") else "standard"
                mode = "plan" if code.startswith("no_result") else "interactive"
                found = checking.check(script, policy=policy, mode=mode)
                self.assertEqual([each["code"] for each in found], [code])

    def test_each_code_of_the_page_has_an_example(self):
        codes = set(re.findall(r"^### (\w+)$", PAGE.read_text(), re.MULTILINE))
        examples = {code for code, _ in FENCE.findall(PAGE.read_text())}
        self.assertEqual(codes - NO_EXAMPLE, examples)

    def test_the_violation_shown_is_what_the_first_example_gives(self):
        shown = re.search(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
        _, script = FENCE.findall(PAGE.read_text())[0]
        self.assertEqual(json.loads(shown[1]), {"violations": checking.check(script)})
