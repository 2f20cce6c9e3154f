import unittest

from . import checking


BUILT = {
    "syntax_error",
    "unknown_name",
    "unknown_module",
    "unknown_attribute",
    "unknown_argument",
    "missing_argument",
    "too_many_arguments",
    "argument_type",
}


class MistakesTest(unittest.TestCase):
    maxDiff = None

    def test_every_mistake_of_the_list_is_found_with_a_hint_that_names_the_fix(self):
        for mistake in checking.mistakes():
            if mistake["expect"]["code"] not in BUILT:
                continue
            with self.subTest(mistake["id"], title=mistake["title"]):
                found = _check(mistake)
                expect = mistake["expect"]
                also = [(each["code"], each["line"]) for each in mistake.get("also", [])]
                told = [each for each in found if (each["code"], each["line"]) not in also]
                self.assertEqual([(each["code"], each["line"]) for each in told], [(expect["code"], expect["line"])])
                self.assertIn(expect["hint_contains"], told[0]["hint"] + "\n" + told[0]["hint"].lower())

    def test_nothing_is_found_in_right_scripts(self):
        for script in checking.right():
            with self.subTest(script["id"], title=script["title"]):
                self.assertEqual(_check(script), [])


def _check(case):
    return checking.check(
        case["script"], policy=case["policy"], mode=case["mode"], names=case.get("inputs", {})
    )
