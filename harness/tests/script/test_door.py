"""What a script sees of an error that it prints itself."""

import ast
import asyncio  # noqa: F401 - here, so that the processes of the scripts need not import it
import builtins
import json
import logging  # noqa: F401
import os
import re
import struct
import sys
import unittest

from sandglass_harness.script import door, emit, host_tools, runtime, tool_functions

from .. import forked

# Python 3.10 keeps the frame in which an exception was caught: that of the helper.
FRAMES_OF_A_HELPER = 1 if sys.version_info < (3, 11) else 0

PRELUDE = """\
import asyncio, io, logging, sys, threading, traceback
told = []
class Bad:
    def __str__(self): return 1 / 0
class Ordered:
    def __lt__(self, other): return 1 / 0
class Endless(list):
    def __iter__(self): raise LookupError("no more")
def show(error):
    told.append(traceback.format_exc())
    told.append("".join(traceback.format_exception(error)))
    kept, sys.stderr = sys.stderr, io.StringIO()
    traceback.print_exc()
    sys.excepthook(type(error), error, error.__traceback__)
    logging.lastResort = None
    logging.getLogger().handlers[:] = [logging.StreamHandler(sys.stderr)]
    logging.exception("failed")
    thread = threading.Thread(target=reraise, args=(error,))
    thread.start()
    thread.join()
    told.append(sys.stderr.getvalue())
    sys.stderr = kept
def reraise(error):
    raise RuntimeError("again") from error
async def call(function, *args):
    return await function(*args)
"""

SEARCH = {
    "name": "search",
    "params": [{"name": "query", "type": "str", "required": True, "nullable": False}],
    "more": False,
    "returns": "dict",
    "doc": "Finds.",
    "types": "",
}
PYTHON_TOOLS = [
    {"name": "plain", "source": "def plain(row):\n    return row['id']", "stub": "def plain(row): ..."},
    {"name": "later", "source": "async def later(row):\n    return row['id']", "stub": "async def later(row): ..."},
    {
        "name": "wrapped",
        "source": (
            "async def wrapped(row):\n"
            "    try:\n        return row['id']\n"
            "    except KeyError as error:\n        raise LookupError('no id') from error"
        ),
        "stub": "async def wrapped(row): ...",
    },
    {"name": "emits", "source": "def emits(value):\n    emit_result(value)", "stub": "def emits(value): ..."},
]


class Host(forked.Collecting):
    """Keeps frames, and answers each tool call at once: "fail" by an error, everything else by an object."""

    def __init__(self):
        super().__init__()
        self._read, self._write_end = os.pipe()
        self.bridge = host_tools.Bridge(self._read, self)

    def send_line(self, line):
        call = json.loads(line)
        failed = call["args"]["query"] == "fail"
        answer = {"error": {"code": "gone", "message": "no order"}} if failed else {"result": {"name": "n"}}
        data = json.dumps({"id": call["id"], **answer}).encode()
        os.write(self._write_end, struct.pack("=I", len(data)) + data)


def _run(source, preamble, timeout):
    host = Host()
    sys.stdout = sys.stderr = open(os.devnull, "w")
    if timeout is not None:
        emit.install_clock()
        emit.arm(timeout)
    stubs = {tool["name"]: tool["stub"] for tool in PYTHON_TOOLS}
    tools = tool_functions.make_functions([SEARCH], host.bridge, stubs)
    runtime.run_script(
        source, host, tools=tools, tool_sources=PYTHON_TOOLS, preamble=preamble, inputs={"rows": [1]}, timeout_text="1"
    )
    emit.disarm()
    return host.frames


def told_by(source, preamble="", timeout=None):
    """Runs a script. Returns the texts in `told`, and the frame of an error that ended it."""
    frames = forked.call(_run, f"{PRELUDE}{source}\nemit_log(repr(told))", preamble, timeout)
    logs = [frame["message"] for frame in frames if frame["type"] == "log"]
    errors = [frame for frame in frames if frame["type"] == "error"]
    told = ast.literal_eval(logs[-1]) if logs else []
    if sys.version_info < (3, 11):  # where a thread prints by C code, which also names the module __main__
        told = [text.replace("__main__.", "") if isinstance(text, str) else text for text in told]
    return told, errors


def shows_harness(text):
    """Returns the lines that show a frame of the harness, or a name or a path of it."""
    return [line for line in text.splitlines() if "sandglass" in line or '"<tool>"' in line]


class PrintedErrorTest(unittest.TestCase):
    maxDiff = None

    def check(self, call, want, places=("in fail",), preamble="", is_async=False):
        """Lets a script print the error of a call, in a function of its own, by everything that Python has for it."""
        if is_async:
            body = f"async def main():\n    return {call}\ndef fail(): asyncio.run(main())\n"
        else:
            body = f"def fail(): {call}\n"
        source = f"{body}try: fail()\nexcept BaseException as error: show(error)"
        told, errors = told_by(source, preamble)
        self.assertEqual((len(told), errors), (3, []))
        for text in told:
            with self.subTest(call):
                self.assertLessEqual(len(shows_harness(text)) // (text.count(want) or 1), FRAMES_OF_A_HELPER, text)
                self.assertIn(want, text)
                self.assertNotIn("During handling", text)
                shown = [place for place in text.splitlines() if place.startswith("  File") and "sandglass" not in place]
                for place in places:
                    self.assertTrue(any(place in line for line in shown), (place, text))

    def test_an_error_of_a_helper_shows_the_call_and_nothing_below(self):
        """HA-07: also by traceback, logging, sys.excepthook and threads, which read the exception and not its description."""
        for call, want in (
            ("emit_result({1j})", "\nConversionError: $[0]: a value of type complex"),
            ("emit_result({1j, 2j})", "\nConversionError: $["),
            ("emit_result([[{'a': 2**60}]])", "\nConversionError: $[0][0].a: an integer beyond"),
            ("emit_result({(1,): 2})", "\nConversionError: $: a key of type tuple"),
            ("emit_result({1j: 2})", "\nConversionError: $: a key of type complex"),
            ("emit_intermediate('part', {1j})", "\nConversionError: $[0]: a value of type complex"),
            ("emit_result(1, 2)", "\nTypeError: emit_result() takes"),
            ("emit_intermediate()", "\nTypeError: emit_intermediate() missing"),
            ("emit_log()", "\nTypeError: emit_log() missing"),
            ("describe_tool('serch')", "\nToolError: no tool 'serch'"),
            ("describe_tool([])", "\nTypeError: unhashable type"),
            ("describe_tool()", "\nTypeError: "),
            ("search()", "\nTypeError: search() missing"),
            ("search('fail')", "\nToolError: no order"),
            ("search(float('nan'))", "\nToolError: search: the arguments cannot be sent: $.query: nan"),
            ("search({1j})", "\nToolError: search: the arguments cannot be sent: $.query[0]: a value"),
            ("search('find').nmae", "\nAttributeError: the object has no field 'nmae'"),
        ):
            self.check(call, want)

    def test_code_of_the_script_that_a_helper_calls_shows(self):
        for call, want, place in (
            ("emit_result({Ordered(), Ordered()})", "ZeroDivisionError", "__lt__"),
            ("emit_result(Endless('a'))", "LookupError: no more", "__iter__"),
            ("emit_log(Bad())", "ZeroDivisionError", "__str__"),
            ("emit_intermediate(Bad())", "ZeroDivisionError", "__str__"),
            ("search(Endless('a'))", "LookupError: no more", "__iter__"),
        ):
            self.check(call, want, ("in fail", place))

    def test_an_error_of_a_python_tool_shows_the_call_and_the_tool(self):
        for call, want, place in (
            ("plain({})", "KeyError: 'id'", '"<tool plain>", line 2, in plain'),
            ("later({})", "KeyError: 'id'", '"<tool later>", line 2, in later'),
            ("later()", "TypeError: later() missing", "in fail"),
            ("emits({1j})", "\nConversionError: $[0]: a value of type complex", '"<tool emits>", line 2, in emits'),
        ):
            self.check(call, want, ("in fail", place))

    def test_an_error_that_a_tool_raises_from_another_shows_both(self):
        for is_async, call in ((False, "wrapped({})"), (True, "await wrapped({})")):
            with self.subTest(call):
                self.check(call, "LookupError: no id", ("<tool wrapped>",), is_async=is_async)

    def test_so_does_an_error_of_async_code(self):
        for call, want in (
            ("await search('fail')", "\nToolError: no order"),
            ("await search({1j})", "\nToolError: search: the arguments cannot be sent"),
            ("await asyncio.gather(search('fail'), search('find'))", "\nToolError: no order"),
            ("await asyncio.create_task(search('fail'))", "\nToolError: no order"),
            ("await asyncio.wait_for(search('fail'), 5)", "\nToolError: no order"),
            ("await call(later, {})", "KeyError: 'id'"),
            ("await asyncio.gather(later({}))", "KeyError: 'id'"),
            ("await asyncio.to_thread(search, 'fail')", "\nToolError: no order"),
            ("await asyncio.to_thread(emit_result, {1j})", "\nConversionError: $[0]"),
            ("emit_result({1j})", "\nConversionError: $[0]"),
        ):
            self.check(call, want, ("in main",), is_async=True)

    @unittest.skipIf(sys.version_info < (3, 11), "exception groups came with Python 3.11")
    def test_so_do_the_members_of_a_group(self):
        source = (
            "async def one(value): emit_result(value)\n"
            "async def main(function, value):\n"
            "    async with asyncio.TaskGroup() as group: group.create_task(function(value))\n"
            "for function, value in ((one, {1j}), (search, 'fail'), (lambda row: call(later, row), {})):\n"
            "    try: asyncio.run(main(function, value))\n"
            "    except ExceptionGroup as error: show(error)"
        )
        told, errors = told_by(source)
        self.assertEqual((len(told), errors), (9, []))
        for n, text in enumerate(told):
            self.assertEqual(shows_harness(text), [], text)
            self.assertIn((" ConversionError: $[0]", " ToolError: no order", " KeyError: 'id'")[n // 3], text)

    def test_functions_of_the_preamble_show_as_they_are(self):
        self.check("give()", "\nConversionError: $[0]", ('"<preamble>", line 1, in give',), "def give(): emit_result({1j})")

    def test_an_error_in_a_handler_keeps_the_scripts_own_error_before_it(self):
        source = (
            "try:\n    try: {}['k']\n    except KeyError: emit_result({1j})\n"
            "except Exception as error: told.append(traceback.format_exc())"
        )
        told, _ = told_by(source)
        self.assertEqual([len(shows_harness(text)) for text in told], [FRAMES_OF_A_HELPER])
        self.assertEqual(re.findall(r"^\w+Error", told[0], re.MULTILINE), ["KeyError", "ConversionError"])
        self.assertEqual(told[0].count("During handling"), 1)

    @unittest.skipIf(FRAMES_OF_A_HELPER, "Python 3.10 then shows all frames")
    def test_an_error_at_the_end_of_the_stack_shows_no_harness(self):
        """There the handler of a helper has no room for a call of its own."""
        for call in ("emit_log(n)", "search('find')", "search('find').nmae", "describe_tool('search')", "emit_result([n])"):
            source = (
                f"def deep(n):\n    if n == 0: {call}\n    else: deep(n - 1)\n"
                "for n in range(sys.getrecursionlimit() - 60, sys.getrecursionlimit() + 10):\n"
                "    try: deep(n)\n"
                "    except BaseException as error: told.append(traceback.format_exc())"
            )
            with self.subTest(call):
                told, errors = told_by(source)
                self.assertEqual(errors, [])
                self.assertTrue(told)
                shown = [shows_harness(text) for text in told]
                self.assertEqual([lines for lines in shown if lines], [])

    def test_a_deadline_that_the_script_catches_shows_where_the_script_was(self):
        for wait in ("while True: pass", "while True: emit_log('x')", "while True: search('find')"):
            source = (
                f"import signal\ndef work():\n    {wait}\n"
                "signal.setitimer(signal.ITIMER_REAL, 0.01)\n"
                "try: work()\nexcept BaseException as error: told.append(traceback.format_exc())"
            )
            with self.subTest(wait):
                told, _ = told_by(source, timeout=60)
                self.assertEqual(len(told), 1)
                self.assertLessEqual(len(shows_harness(told[0])), 2 * FRAMES_OF_A_HELPER, told[0])
                self.assertTrue(told[0].endswith("\nScriptTimeout\n"), told[0])
                self.assertIn("in work", told[0])

    def test_a_deadline_at_the_first_instruction_of_a_helper_shows_no_harness(self):
        source = (
            "import signal\n"
            "def alarm(frame, event, arg):\n"
            "    if event == 'call' and frame.f_code.co_filename.endswith('/door.py'):\n"
            "        sys.setprofile(None)\n"
            "        signal.getsignal(signal.SIGALRM)(signal.SIGALRM, frame)\n"
            "sys.setprofile(alarm)\n"
            "try: emit_log('x')\nexcept BaseException as error: told.append(traceback.format_exc())"
        )
        told, _ = told_by(source, timeout=60)
        self.assertEqual(len(told), 1)
        self.assertLessEqual(len(shows_harness(told[0])), 2 * FRAMES_OF_A_HELPER, told[0])
        self.assertTrue(told[0].endswith("\nScriptTimeout\n"), told[0])

    def test_a_call_that_nobody_awaits_has_the_name_of_the_tool(self):
        source = (
            "sys.stderr = io.StringIO()\n"
            "import warnings\nwarnings.simplefilter('always')\n"
            "async def main():\n"
            "    search('fail')\n"
            "    forgotten = asyncio.create_task(search('fail'))\n"
            "    told.append(repr(forgotten))\n"
            "    await asyncio.wait([forgotten])\n"
            "    told.append(repr(forgotten))\n"
            "asyncio.run(main())\n"
            "import gc; gc.collect()\n"
            "told.append(sys.stderr.getvalue())"
        )
        told, errors = told_by(source)
        self.assertEqual((len(told), errors), (3, []))
        self.assertIn("coroutine 'search' was never awaited", told[2])
        self.assertIn("Task exception was never retrieved", told[2])
        for text in told:
            self.assertNotIn("sandglass", text)
            self.assertNotIn("await_future", text)
        self.assertIn("coro=<search() running at <tool>:", told[0])

    def test_an_error_of_a_helper_can_be_pickled_and_caught_by_its_name(self):
        source = (
            "import pickle\n"
            "try: emit_result([{1j}])\n"
            "except ConversionError as error:\n"
            "    copy = pickle.loads(pickle.dumps(error))\n"
            "    told.append([str(copy), type(copy) is ConversionError, isinstance(copy, TypeError)])"
        )
        text = "$[0][0]: a value of type complex cannot be sent as JSON; convert it first"
        self.assertEqual(told_by(source), ([[text, True, True]], []))


class SignatureTest(unittest.TestCase):
    def test_helpers_keep_their_names_texts_and_parameters(self):
        source = (
            "import inspect\n"
            "for each in (emit_result, emit_intermediate, emit_log, describe_tool, search):\n"
            "    told.append([each.__name__, bool(each.__doc__), str(inspect.signature(each))])"
        )
        want = [
            ["emit_result", True, "(data=None)"],
            ["emit_intermediate", True, "(label, data=None)"],
            ["emit_log", True, "(message, level='info')"],
            ["describe_tool", True, "(name)"],
            ["search", True, "(query: 'str') -> 'dict'"],
        ]
        self.assertEqual(told_by(source), (want, []))


class HostileErrorTest(unittest.TestCase):
    def test_no_code_of_an_error_is_called(self):
        def trap(self, *_):
            raise SystemExit("called")

        own = {name: property(trap) for name in ("__cause__", "__context__", "__traceback__", "__class__", "exceptions")}
        for base in (Exception, *filter(None, (getattr(builtins, "ExceptionGroup", None),))):
            error = type("Sly", (base,), {**own, "__eq__": trap, "__hash__": trap})("m", *([ValueError()],) * (base is not Exception))
            outer = ValueError()
            outer.__context__ = outer.__cause__ = error
            door.remove_harness(error)
            door.remove_harness(outer)

    def test_errors_that_refer_to_each_other_end(self):
        first, second = ValueError(), ValueError()
        first.__cause__, second.__cause__ = second, first
        BaseException.__context__.__set__(first, second)
        BaseException.__context__.__set__(second, first)
        door.remove_harness(first)
