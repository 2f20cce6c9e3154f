import traceback
import unittest

from sandglass_harness.script import tool_functions
from sandglass_harness.script.host_tools import ToolError


def signature(name, *params, more=False):
    own = [{"name": p, "type": "int", "required": True, "nullable": False} for p in params]
    return {"name": name, "params": own, "more": more, "returns": "int", "doc": "", "types": ""}


class Refusing:
    """A bridge whose every call fails, some frames below."""

    def call(self, name, args):
        return self._send(name, args)

    def _send(self, name, args):
        raise ToolError(f"{name} {args}", "refused")


class ToolFunctionsTest(unittest.TestCase):
    def test_a_script_that_prints_a_failed_call_sees_no_frame_of_the_harness(self):
        """HA-07"""
        made = tool_functions.make_functions([signature("charge", "amount")], Refusing())
        try:
            made["charge"](3)
        except ToolError as error:
            frames = [(frame.filename, frame.name) for frame in traceback.extract_tb(error.__traceback__)]
            told = traceback.format_exc()
        self.assertEqual(frames[1:], [("<tool>", "charge")])
        self.assertNotIn("During handling", told)

    def test_a_parameter_may_have_any_name_that_the_function_uses_itself(self):
        sent = []

        class Bridge:
            def call(self, _name, args):
                sent.append(args)

        made = tool_functions.make_functions([signature("f", "error", "more", "_collect", more=True)], Bridge())
        made["f"](1, more=2, _collect=3, error_=4)
        self.assertEqual(sent, [{"error": 1, "more": 2, "_collect": 3, "error_": 4}])
