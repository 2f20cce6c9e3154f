import unittest

from . import checking


def tool(name, *params, **rest):
    return {
        "name": name,
        "params": list(params),
        "more": False,
        "returns": "Any",
        "doc": "",
        "types": "",
        "schemas": {},
        "result": True,
        "rest": False,
        "awaits": False,
        **rest,
    }


def param(name, kind=None, **rest):
    given = {} if kind is None else {"kind": kind}
    return {"name": name, "type": "Any", "required": not rest, "nullable": True, **given, **rest}


TOOLS = [
    tool("clean", param("rows"), param("how", "keyword", default="fast")),
    tool("load", param("path", "positional"), param("limit", default=5), schemas={"limit": {"type": "integer"}}),
    tool("total", param("unit", "keyword"), rest=True),
    tool("fetch", param("id"), awaits=True),
    tool("anything", more=True, rest=True),
]


class PythonToolsTest(unittest.TestCase):
    """Tools that are Python themselves take arguments by position or keyword alone, and may give nothing to await."""

    def test_right_calls_are_right(self):
        for script in (
            "clean([1])\nclean(rows=[1], how='well')\nload('a')\nload('a', 3)\nload('a', limit=None)",
            "total(1, 2, 3, unit='EUR')\ntotal(unit='EUR')\nanything(1, 2, a=3)",
            "async def f():\n    rows = clean([1])\n    return rows['n'] + load('x')[0]",
            "async def f():\n    row = await fetch(1)\n    return row['n']",
            "print(fetch(1)['n'])",
            "print(describe_tool('clean'), list(map(clean, [[1], [2]])))",
        ):
            with self.subTest(script):
                self.assertEqual(checking.check(script, with_tools=TOOLS), [])

    def test_a_function_of_the_host_may_be_handed_to_one_and_not_to_another_of_the_host(self):
        price = {key: value for key, value in tool("price", param("sku")).items() if key not in ("rest", "awaits")}
        tools = [*TOOLS, price, {**price, "name": "order"}]
        self.assertEqual(checking.check("anything(['a'], price)\nanything(by=price)", with_tools=tools), [])
        self.assertEqual([each["code"] for each in checking.check("order(price)", with_tools=tools)], ["not_called"])

    def test_wrong_calls_are_reported_with_what_to_write(self):
        for script, code, message, hint in (
            ("clean([1], 'well')", "too_many_arguments", "clean() takes at most 1 argument by position, not 2",
             "Write clean(rows, how='fast')."),
            ("clean(row=[1])", "unknown_argument", "clean() has no parameter 'row'",
             "clean() takes rows, how. Write rows=[1] in place of row=[1]."),
            ("clean()", "missing_argument", "clean() needs rows", "Add rows=... to the call: clean(rows, how='fast')."),
            ("load(path='a')", "unknown_argument", "load() takes path by position only",
             "It is given by position: load(path, limit=5)."),
            ("load()", "missing_argument", "load() needs path", "Add path to the call: load(path, limit=5)."),
            ("load('a', limit='b')", "argument_type", "limit of load() has to be int, not 'b'",
             "Give int in place of 'b'."),
            ("total(1, 2)", "missing_argument", "total() needs unit", "Add unit=... to the call: total(unit=...)."),
            ("r = load\nprint(r + 1)", "not_called", "r is the function load itself: it is never called",
             "Call it: r = load(...)."),
            ("async def f():\n    return fetch(1)['n']", "not_awaited",
             "fetch() returns an awaitable here, but it is indexed",
             "Write (await fetch(1)) with the parentheses, then take the field."),
            ("emit_result(claen([1]))", "unknown_name", "'claen' is not defined",
             "Did you mean clean(rows, how='fast')?"),
        ):  # fmt: skip
            with self.subTest(script):
                found = [(each["code"], each["message"], each["hint"]) for each in checking.check(script, with_tools=TOOLS)]
                self.assertEqual(found, [(code, message, hint)])
