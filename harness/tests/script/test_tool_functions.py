import unittest

from sandglass_harness.script import tool_functions


def signature(name, *params, more=False):
    own = [{"name": p, "type": "int", "required": True, "nullable": False} for p in params]
    return {"name": name, "params": own, "more": more, "returns": "int", "doc": "", "types": ""}


class ToolFunctionsTest(unittest.TestCase):
    def test_a_parameter_may_have_any_name_that_the_function_uses_itself(self):
        sent = []

        class Bridge:
            def call(self, _name, args):
                sent.append(args)

        made = tool_functions.make_functions([signature("f", "error", "more", "_collect", more=True)], Bridge())
        made["f"](1, more=2, _collect=3, error_=4)
        self.assertEqual(sent, [{"error": 1, "more": 2, "_collect": 3, "error_": 4}])
