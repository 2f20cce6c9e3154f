import unittest

from sandglass_harness.session import cells, variables

from .. import forked


def described(*sources, base=None):
    def go():
        namespace = cells.Namespace(base or {})
        for number, source in enumerate(sources, 1):
            cells.run(source, number, namespace)
        return variables.describe(namespace)

    return forked.call(go)


def completed(source, code, cursor=None):
    def go():
        namespace = cells.Namespace({"emit_result": len})
        cells.run(source, 1, namespace)
        return variables.complete(namespace, code, len(code) if cursor is None else cursor)

    return forked.call(go)


class DescribeTest(unittest.TestCase):
    def test_variables_are_those_that_cells_have_bound_in_order(self):
        found = described("import json\nx = 1", "def f(): pass\nitems = [1, 2]", base={"emit_result": len})
        self.assertEqual([(each["name"], each["type"], each["shape"]) for each in found], [
            ("json", "module", None), ("x", "int", None), ("f", "function", None), ("items", "list", [2]),
        ])
        self.assertEqual([each["bytes"] is None for each in found], [True, False, True, False])

    def test_a_helper_that_a_cell_has_bound_anew_is_a_variable(self):
        self.assertEqual([each["name"] for each in described("emit_result = 5", base={"emit_result": len})], ["emit_result"])

    def test_no_code_of_a_cell_is_called(self):
        source = (
            "class Loud:\n"
            "    __module__ = 'numpy'\n"
            "    def __len__(self): raise SystemExit\n"
            "    __sizeof__ = shape = nbytes = property(__len__)\n"
            "class Grown(list):\n"
            "    __len__ = __sizeof__ = Loud.__len__\n"
            "loud, grown = Loud(), Grown()\n"
        )
        found = described(source)
        self.assertEqual([(each["name"], each["shape"], each["bytes"]) for each in found[2:]], [("loud", None, None), ("grown", None, None)])

    def test_the_number_of_variables_is_bounded(self):
        self.assertEqual(len(described("for i in range(2000): globals()[f'v{i}'] = i")), variables.MAX_VARIABLES)


class CompleteTest(unittest.TestCase):
    def test_names_of_the_session_builtins_and_keywords(self):
        self.assertEqual(completed("import_rate = 1", "y = impo"), ["import", "import_rate"])
        self.assertEqual(completed("", "isins"), ["isinstance"])
        self.assertEqual(completed("", "emit_r"), ["emit_result"])

    def test_names_are_completed_at_the_cursor(self):
        self.assertEqual(completed("counter = 1", "coun + 5", 4), ["counter"])

    def test_attributes_are_completed(self):
        self.assertEqual(completed("import os", "os.path.exis"), ["exists"])
        self.assertEqual(completed("class P: pass\np = P()\np.size, p.side = 1, P()\np.side.wide = 2", "print(p.si"), ["side", "size"])
        self.assertEqual(completed("class P: pass\np = P()\np.side = P()\np.side.wide = 2", "p.side."), ["wide"])

    def test_keys_of_dicts_are_completed(self):
        self.assertEqual(completed("d = {'name': 1, 'nature': 2, 3: 4}", "d['na"), ["name", "nature"])

    def test_no_property_of_a_cell_is_called(self):
        source = "class P:\n    @property\n    def bomb(self): raise SystemExit\np = P()"
        self.assertEqual(completed(source, "p.bomb.x"), [])
        self.assertEqual(completed(source.replace("@property", ""), "p.bomb.__fu"), ["__func__"])

    def test_an_undefined_name_has_no_completions(self):
        self.assertEqual([completed("x = 1", code) for code in ("nothing.a", "x.y.z", "'text'.", "", "1.")][:2], [[], []])


if __name__ == "__main__":
    unittest.main()
