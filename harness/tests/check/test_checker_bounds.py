import time
import unittest

from sandglass_harness.check import checker, modules as check_modules, names as check_names

from . import checking


class BoundsTest(unittest.TestCase):
    def test_however_a_script_is_built_it_is_answered_without_a_crash(self):
        for name, script in SCRIPTS.items():
            for policy in ("standard", "strict"):
                with self.subTest(name, policy=policy):
                    codes = [code for code, _ in checking.codes(script, policy=policy, mode="plan")]
                    self.assertNotIn("checker_failed", codes)

    def test_what_python_does_not_compile_for_its_depth_is_a_syntax_error(self):
        for script in ("(" * 5000 + ")" * 5000, "x = " + "+".join(["1"] * 100_000)):
            self.assertEqual([code for code, _ in checking.codes(script)], ["syntax_error"])

    def test_at_most_fifty_violations_and_the_last_tells_how_many_more(self):
        found = checking.check("\n".join(f"bad{number}" for number in range(3000)))
        self.assertEqual([each["line"] for each in found], list(range(1, 51)))
        self.assertEqual(found[-1]["message"], "'bad49' is not defined (And 2950 more problems below this one.)")

    def test_long_names_are_cut(self):
        for each in checking.check("search_orders(" + "q" * 100_000 + "=1)\n" + "z" * 100_000):
            self.assertLessEqual(max(len(each["message"]), len(each["hint"])), 300)

    def test_a_checker_that_fails_rejects(self):
        before = checker.check_names
        checker.check_names = lambda *_: 1 / 0
        try:
            (found,) = checking.check("x = 1")
        finally:
            checker.check_names = before
        self.assertEqual((found["code"], found["line"], found["column"]), ("checker_failed", 1, 0))

    def test_nothing_of_the_script_is_imported_or_run(self):
        script = "import antigravity_that_is_not, this\n@print\ndef f(x=print('ran')): pass\nclass A: print('ran')\n"
        with checking.captured() as output:
            checking.check(script)
        self.assertEqual(output.getvalue(), "")

    def test_the_harness_itself_is_no_module_of_a_script(self):
        self.assertEqual(checking.codes("import sandglass_harness"), [("unknown_module", 1)])

    def test_every_module_that_hints_name_is_there(self):
        self.assertEqual([each for each in check_names._NAMES_OF_MODULE if not check_modules.exists(each.partition(".")[0])], [])

    def test_times_are_printed(self):
        checker.warm_up()
        for repeats in (4, 200):
            script = "\n".join(_PART.format(n=n) for n in range(repeats))
            times = []
            for _ in range(5 if repeats < 50 else 1):
                started = time.perf_counter()
                self.assertEqual(checking.check(script), [])
                times.append(time.perf_counter() - started)
            print(f"check of {len(script.splitlines())} lines: {min(times) * 1000:.1f} ms")


_PART = '''
def report_{n}(region, limit=20):
    """Late orders of one region."""
    orders = search_orders(query="", status="late", limit=50)
    rows = []
    for order in orders:
        if order["region"] != region:
            continue
        customer = get_customer(customer_id=order["customer_id"])
        line = f"{{order['id']}}: {{customer['name']}} ({{customer.tier}})"
        rows.append({{"text": line, "total": round(order["total"], 2)}})
        if len(rows) >= limit:
            break
    total = sum(row["total"] for row in rows)
    return {{"region": region, "rows": rows, "total": total}}


answers_{n} = {{}}
for region in list_regions():
    if count_orders(status="late", region=region) > {n}:
        answers_{n}[region] = report_{n}(region)
        emit_log(f"{{region}}: {{len(answers_{n}[region]['rows'])}} late orders")
emit_intermediate("part {n}", answers_{n})
'''

SCRIPTS = {
    "attributes": "a = 1\nx = a" + ".b" * 2000,
    "calls": "def a(): return a\nx = a" + "()" * 900,
    "fields of a result": 'x = get_customer(customer_id="a")' + ".id" * 900,
    "items of a result": 'x = search_orders("", "open")' + "[0]" * 900,
    "not": "x = " + "not " * 900 + "1",
    "minus": "search_orders('', 'open', limit=" + "-" * 900 + "1)",
    "lists": "emit_result(" + "[" * 90 + "count_orders" + "]" * 90 + ")",
    "elif": "x = 1\nif x: pass\n" + "elif x: pass\n" * 1500,
    "blocks": "".join(" " * i + "if 1:\n" for i in range(99)) + " " * 99 + "pass",
    "lambdas": "x = " + "lambda: " * 900 + "0",
    # CPython 3.12 and 3.13 crash when they compile about 60 of them, also without the checker
    "comprehensions": "x = " + "[0 for a in [1] if " * 20 + "1" + "]" * 20,
    "a template": '"{0[%s]}".format(1)' % ("a][" * 5000),
    "comparisons": "x = " + " < ".join(["count_orders"] * 500),
    "aliases": "x0 = count_orders()\n" + "\n".join(f"x{i + 1} = x{i}" for i in range(1000)) + "\nx1000['a']",
    "a circle": "a = b\nb = a\na['x']\na.y\na()\nimport c as d\nd = d",
    "functions": "\n".join(f"def f{i}():\n    f{i + 1}()" for i in range(1000)) + "\nif f1: emit_result(1)\nelse: pass",
    "a long integer": "search_orders('', 'open', limit=0x" + "f" * 5000 + ")",
    "infinity": "search_orders('', 'open', limit=1e999)",
    "a lone surrogate": 'search_orders(query="\\ud800", x="\\ud800", status="\\ud800")',
    "warnings": 'x = "\\d"\nassert (1, "x")\nx is 1',
    "nothing": "",
}
