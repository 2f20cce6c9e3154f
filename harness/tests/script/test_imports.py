import importlib
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

from sandglass_harness.caps import MAX_IMPORTS
from sandglass_harness.script.imports import ImportNotes


class ImportNotesTest(unittest.TestCase):
    """The modules that a script loads."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        finders, path, modules = list(sys.meta_path), list(sys.path), set(sys.modules)

        def restore():
            sys.meta_path[:], sys.path[:] = finders, path
            for name in set(sys.modules) - modules:
                del sys.modules[name]

        self.addCleanup(restore)
        sys.path.insert(0, directory.name)
        self.notes = ImportNotes()
        self.notes.begin()

    def write(self, path, source=""):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source)
        importlib.invalidate_caches()

    def test_modules_that_others_bring_along_are_not_noted(self):
        self.write("noted_a/__init__.py", "from . import part\nimport noted_b, json")
        self.write("noted_a/part.py")
        self.write("noted_a/late.py", "import noted_c")
        for name in ("noted_b", "noted_c"):
            self.write(name + ".py")
        importlib.import_module("noted_a")
        importlib.import_module("noted_a")
        importlib.import_module("noted_b")
        importlib.import_module("noted_a.late")
        importlib.import_module("noted_c")
        self.assertEqual(self.notes.loaded, ["noted_a", "noted_a.late"])

    def test_what_failed_or_belongs_to_the_standard_library_is_not_noted(self):
        self.write("noted_broken.py", "import noted_gone")
        self.write("noted_next.py")
        for name in ("noted_broken", "noted_missing"):
            self.assertRaises(ImportError, importlib.import_module, name)
        sys.modules.pop("colorsys", None)
        importlib.import_module("colorsys")
        importlib.import_module("noted_next")
        self.assertEqual(self.notes.loaded, ["noted_next"])

    def test_a_script_that_replaces_what_is_read_at_its_end_loses_only_the_notes(self):
        class Modules(dict):
            def __contains__(self, name):
                raise SystemExit(3)

        self.write("noted_d.py")
        importlib.import_module("noted_d")
        self.notes._names.append(b"bytes")
        sys.modules[b"bytes"] = None
        self.assertEqual(self.notes.loaded, ["noted_d"])
        with unittest.mock.patch.object(sys, "modules", Modules(sys.modules)):
            self.assertEqual(self.notes.loaded, [])

    def test_the_number_of_noted_modules_is_bounded(self):
        for number in range(MAX_IMPORTS + 5):
            self.write(f"noted_{number}.py")
            importlib.import_module(f"noted_{number}")
        self.assertEqual(self.notes.loaded, [f"noted_{number}" for number in range(MAX_IMPORTS)])

    def test_a_module_that_replaces_itself_stops_nothing(self):
        self.write("noted_odd.py", "import sys\nsys.modules[__name__] = 1\nimport noted_inner")
        self.write("noted_inner.py")
        self.assertEqual(importlib.import_module("noted_odd"), 1)
        self.assertEqual(self.notes.loaded, ["noted_odd", "noted_inner"])
