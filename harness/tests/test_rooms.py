"""The import table of the harness: which room may import what. ARCHITECTURE.md says why."""

import ast
import pathlib
import unittest

HARNESS = pathlib.Path(__file__).parent.parent / "sandglass_harness"

# Modules above the rooms that every room may import, and what each of them may import.
SHARED = {
    "__init__": set(),
    "caps": set(),
    "libc": set(),
    "text": {"caps"},
    "version": set(),
    "wire": {"caps"},
}
# Room -> doors of other rooms that it may import. The entry points lead everywhere.
ROOMS = {
    "broker": set(),
    "script": {"check.checker", "session.head"},
    "check": set(),
    # The process of a session is one of a script.
    "session": {
        *("script." + name for name in ("child", "commands", "convert", "descendants", "display", "door", "emit", "explain", "host_tools", "in_place")),
        *("script.runtime", "script.script_process", "script.tool_functions"),
    },
}
ENTRY = {"start": {"libc", "broker.broker", "broker.workspace", "script.zygote"}}


def breaches(sources):
    """One sentence for each import that the tables do not allow. `sources` is module (`script.emit`) to source."""
    found = []
    edges = {}
    for name, source in sorted(sources.items()):
        room, _, _ = name.rpartition(".")
        if room and room not in ROOMS:
            found.append(f"{name} is in no room")
            continue
        if not room and name not in SHARED and name not in ENTRY:
            found.append(f"{name} is not in the tables")
            continue
        edges[name] = set()
        for target, is_lazy in imports(name, source, sources):
            if target is None:
                found.append(f"{name} imports a module of the harness by its full name")
                continue
            if not is_lazy:
                edges[name].add(target)
            if not is_allowed(name, room, target):
                found.append(f"{name} imports {target}")
    cycle = cycle_in(edges)
    return found + ([f"import cycle: {' -> '.join(cycle)}"] if cycle else [])


def is_allowed(name, room, target):
    if name in ENTRY:
        return target in ENTRY[name]
    if not room:
        return target in SHARED[name]
    return target.startswith(room + ".") or target in SHARED or target in ROOMS[room]


def imports(name, source, sources):
    """Modules of the harness that a module imports, and whether it does so in a function. None: by an absolute name."""
    tree = ast.parse(source)
    lazy = {id(each) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for each in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(each.name.startswith("sandglass_harness") for each in node.names):
            yield None, False
        if isinstance(node, ast.Call) and names_own_module(node):
            yield None, False
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level == 0:
            if node.module.startswith("sandglass_harness"):
                yield None, False
            continue
        package = name.split(".")[: -node.level]
        base = ".".join([*package, *([node.module] if node.module else [])])
        for each in node.names:
            deeper = f"{base}.{each.name}" if base else each.name
            yield (deeper if deeper in sources else base), id(node) in lazy


def names_own_module(call):
    """True for a call, import_module() for one, that names a module of the harness in a constant."""
    texts = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return any(text == "sandglass_harness" or text.startswith("sandglass_harness.") for text in texts)


def cycle_in(edges):
    """A cycle of a graph, its first node repeated at the end, or None."""
    done = set()

    def visit(node, trail):
        if node in trail:
            return [*trail[trail.index(node) :], node]
        if node in done:
            return None
        done.add(node)
        return next((found for each in sorted(edges.get(node, ())) if (found := visit(each, [*trail, node]))), None)

    return next((found for node in sorted(edges) if (found := visit(node, []))), None)


def harness():
    """Module to source."""
    files = HARNESS.rglob("*.py")
    names = {file: ".".join(file.relative_to(HARNESS).with_suffix("").parts) for file in files}
    return {name: file.read_text() for file, name in names.items()}


class RoomsTest(unittest.TestCase):
    def test_the_harness_keeps_to_the_import_table_of_its_rooms(self):
        self.assertEqual(breaches(harness()), [])

    def test_a_room_has_no_code_in_its_package_which_every_import_would_run(self):
        sources = harness()
        self.assertEqual({room: sources[f"{room}.__init__"] for room in ROOMS}, dict.fromkeys(ROOMS, ""))

    def test_each_breach_is_noticed(self):
        sound = {"wire": "from .caps import A", "caps": "import os", "check.checker": "", "broker.run": "", "script.emit": ""}
        for changes, want in [
            ({}, []),
            ({"script.emit": "from ..check import checker\nfrom ..wire import encode"}, []),
            ({"broker.run": "from ..script import emit"}, ["broker.run imports script.emit"]),
            ({"broker.run": "from ..script.emit import x"}, ["broker.run imports script.emit"]),
            ({"broker.run": "def f():\n    from ..script import emit"}, ["broker.run imports script.emit"]),
            ({"check.checker": "from ..script import emit"}, ["check.checker imports script.emit"]),
            ({"script.emit": "from ..check.names import x", "check.names": ""}, ["script.emit imports check.names"]),
            ({"caps": "from .script import emit"}, ["caps imports script.emit"]),
            ({"new": ""}, ["new is not in the tables"]),
            ({"keeper.tree": ""}, ["keeper.tree is in no room"]),
            (
                {"broker.run": "import sandglass_harness.wire"},
                ["broker.run imports a module of the harness by its full name"],
            ),
            (
                {"broker.run": "import importlib\nimportlib.import_module('sandglass_harness.script.emit')"},
                ["broker.run imports a module of the harness by its full name"],
            ),
            (
                {"broker.run": "__import__('sandglass_harness.script')"},
                ["broker.run imports a module of the harness by its full name"],
            ),
            (
                {"broker.run": "from .end import a", "broker.end": "from . import run"},
                ["import cycle: broker.end -> broker.run -> broker.end"],
            ),
        ]:
            with self.subTest(changes):
                self.assertEqual(breaches({**sound, **changes}), want)


if __name__ == "__main__":
    unittest.main()
