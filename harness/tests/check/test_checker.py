import json
import random
import sys
import unittest

from . import checking

ADVERSARIAL = checking.REPOSITORY / "campaigns" / "adversarial" / "cases.json"
HUMANEVAL = checking.REPOSITORY / "examples" / "humaneval" / "humaneval.jsonl"


class MistakesTest(unittest.TestCase):
    maxDiff = None

    def test_every_mistake_of_the_list_is_found_with_a_hint_that_names_the_fix(self):
        for mistake in checking.mistakes():
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


class AnswerTest(unittest.TestCase):
    def test_an_answer_that_is_python_and_does_something_is_a_script(self):
        scripts = ("1/0\nemit_result(1)", "{charge(amount=k) for k in [1]}", "x = 1", "x: int = f()", "(y := 2)", "await f()", "pass")
        for text in scripts:
            with self.subTest(text):
                self.assertTrue(checking.checker.is_script(text))

    def test_words_values_and_what_is_not_python_are_none(self):
        deep, wrong = "(" * 5000, "Here you are:\nf()"
        for text in ("", "# done", "Sorry", "Total: 5", '{"answer": 5}', "- one\n- two", "f(", wrong, "\0", "\ud83d", deep, "'\\d'"):
            with self.subTest(text[:20]):
                self.assertFalse(checking.checker.is_script(text))


class AdversarialTest(unittest.TestCase):
    def test_strict_rejects_what_has_to_be_rejected_and_admits_what_has_to_be_admitted(self):
        cases = [each for each in json.loads(ADVERSARIAL.read_text()) if each["check"].get("static")]
        self.assertGreater(len(cases), 30)
        for case in cases:
            static = case["check"]["static"]
            with self.subTest(case["id"], title=case["title"], static=static):
                found = checking.check(case["script_or_input"], policy="strict", mode="plan", with_tools=[])
                if static == "reject":
                    self.assertNotEqual(found, [])
                elif static == "allow":
                    self.assertEqual(found, [])

    def test_on_an_older_python_syntax_that_it_does_not_know_is_a_syntax_error(self):
        script = "type X[T] = list[T]\nemit_result(1)\n"
        expected = [] if sys.version_info >= (3, 12) else ["syntax_error"]
        self.assertEqual([each["code"] for each in checking.check(script)], expected)


class HumanEvalTest(unittest.TestCase):
    maxDiff = None

    def test_no_solution_has_anything_wrong(self):
        wrong = {name: checking.check(script, mode="plan", with_tools=[]) for name, script in _humaneval()}
        self.assertEqual(len(wrong), 164)
        self.assertEqual({name: found for name, found in wrong.items() if found}, {})

    def test_strict_rejects_those_that_use_what_it_forbids(self):
        refused = {}
        for name, script in _humaneval():
            found = checking.check(script, policy="strict", mode="plan", with_tools=[])
            if found:
                refused[name] = [each["message"] for each in found]
        self.assertEqual(refused, {"HumanEval/160": ["eval is not allowed in a strict script"]})


class FuzzTest(unittest.TestCase):
    def test_whatever_is_cut_out_of_a_script_it_is_answered(self):
        chance = random.Random(5)
        scripts = [each["script"] for each in checking.right() + checking.mistakes()]
        for number in range(400):
            script = chance.choice(scripts)
            for _ in range(chance.randint(1, 3)):
                start = chance.randrange(len(script))
                script = script[:start] + script[start + chance.randint(1, 12) :]
            with self.subTest(number, script=script):
                policy = chance.choice(["standard", "strict"])
                for each in checking.check(script, policy=policy, mode=chance.choice(["plan", "interactive"])):
                    self.assertEqual(list(each), ["code", "line", "column", "message", "hint"])
                    self.assertLessEqual(1, each["line"])
                    self.assertLessEqual(0, each["column"])
                    self.assertLessEqual(max(len(each["message"]), len(each["hint"])), 300)


def _check(case):
    return checking.check(case["script"], policy=case["policy"], mode=case["mode"], names=case.get("inputs", {}))


def _humaneval():
    for line in HUMANEVAL.read_text().splitlines():
        problem = json.loads(line)
        solution = f"{problem['prompt']}{problem['canonical_solution']}\n{problem['test']}"
        yield problem["task_id"], f"{solution}\ncheck({problem['entry_point']})\nemit_result(True)\n"
