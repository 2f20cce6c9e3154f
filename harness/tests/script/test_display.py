import unittest

from .. import forked

PNG = "iVBORw=="  # the first four bytes
PICTURE = "class Picture:\n    def _repr_png_(self): return b'\\x89PNG'\n    def __repr__(self): return 'a picture'\n"


class DisplayTest(unittest.TestCase):
    """The bundles of values, by objects without a library: test/sandbox/environments/displays.test.ts has the real ones."""

    maxDiff = None

    def shown(self, source):
        frames, ending = forked.run(source)
        self.assertEqual(ending, ["done", 0], frames)
        return frames

    def bundles(self, source):
        return [(frame["data"], frame["left_out"]) for frame in self.shown(source)]

    def test_any_value_has_a_text(self):
        source = "display(1, 'a', None, [1, 'b'], int)"
        texts = [data["text/plain"] for data, _ in self.bundles(source)]
        self.assertEqual(texts, ["1", "'a'", "None", "[1, 'b']", "<class 'int'>"])

    def test_methods_of_notebooks_make_the_bundle(self):
        source = PICTURE + (
            "class Rich(Picture):\n"
            "    def _repr_html_(self): return '<b>x</b>'\n"
            "    def _repr_json_(self): return {'a': (1, 2)}, {'metadata': 1}\n"
            "    def _repr_latex_(self): return None\n"
            "    def _repr_pdf_(self): return 'JVBERg=='\n"
            "display(Rich())"
        )
        data = {
            "text/html": "<b>x</b>",
            "image/png": PNG,
            "application/pdf": "JVBERg==",
            "application/json": '{"a":[1,2]}',
            "text/plain": "a picture",
        }
        self.assertEqual(self.bundles(source), [(data, [])])

    def test_a_bundle_of_an_object_wins_over_its_methods(self):
        source = (
            "class Rich:\n"
            "    def _repr_mimebundle_(self, include=None, exclude=None): return {'text/plain': 'p', 'text/html': 'h'}, {}\n"
            "    def _repr_html_(self): return 'no'\n"
            "display(Rich())\n"
            "display({'text/markdown': '# x'}, raw=True)\n"
            "display(Rich(), exclude=['text/html'])"
        )
        want = [{"text/plain": "p", "text/html": "h"}, {"text/markdown": "# x"}, {"text/plain": "p"}]
        self.assertEqual([data for data, _ in self.bundles(source)], want)

    def test_a_method_that_fails_or_gives_nonsense_costs_its_own_type(self):
        source = (
            "class Bad:\n"
            "    def _repr_html_(self): raise KeyError('x')\n"
            "    def _repr_svg_(self): return b'bytes'\n"
            "    def _repr_png_(self): return 'x'\n"
            "    def _repr_jpeg_(self): return 5\n"
            "    def _repr_json_(self): return {1j}\n"
            "    def _repr_markdown_(self): return '*good*'\n"
            "    def __repr__(self): return 'bad'\n"
            "display(Bad())"
        )
        ((data, left_out),) = self.bundles(source)
        self.assertEqual(data, {"text/markdown": "*good*", "text/plain": "bad"})
        self.assertEqual(sorted(left_out), ["application/json", "image/jpeg", "image/png", "image/svg+xml", "text/html"])

    def test_bundles_of_wrong_types_are_no_harm(self):
        source = (
            "class Bundle:\n"
            "    def __init__(self, given): self.given = given\n"
            "    def _repr_mimebundle_(self, **_): return self.given\n"
            "    def __repr__(self): return 'r'\n"
            "for given in (None, 5, 'text', [], (), ({},), {1: 2, 'x': 'y', 'A/B': 'c', 'a/b\\n': 'c', 'text/html': None}):\n"
            "    display(Bundle(given))\n"
            "class Raises:\n"
            "    def _repr_mimebundle_(self, **_): raise ValueError\n"
            "    def __repr__(self): raise ValueError\n"
            "display(Raises())\n"
            "from unittest.mock import Mock\n"
            "display(Mock(name='m'))"
        )
        *same, raises, mock = self.bundles(source)
        unusable = ["'int'", "'x'", "'A/B'", "'a/b\\n'"]
        self.assertEqual(same, [*[({"text/plain": "r"}, [])] * 6, ({"text/plain": "r"}, unusable)])
        self.assertEqual(raises[0], {"text/plain": "<Raises: its representation raised ValueError>"})
        self.assertIn("<Mock", mock[0]["text/plain"])

    def test_a_display_without_content_says_what_was_left_out(self):
        source = (
            "loop, deep = {}, {}\n"
            "loop['a'] = loop\n"
            "for _ in range(100_000): deep = {'a': deep}\n"
            "for given in (loop, deep): display({'application/json': given}, raw=True)\n"
            "display({'x' * 1000: 'y'}, raw=True)\n"
            "display({'text/html': 'x' * (5 << 20), 'text/markdown': '\\0' * (3 << 20)}, raw=True)\n"
            "display({}, {'text/html': None}, raw=True)\n"
            "display({'text/html': 5, 'text/markdown': 'm'}, raw=True, exclude=['text/html'])\n"
            "display({'text/html': 5, 'text/markdown': 'm'}, raw=True, include=['text/latex'])"
        )
        *empty, excluded = self.bundles(source)
        texts = ["application/json", "application/json", "'" + "x" * 99, "text/html, text/markdown"]
        self.assertEqual(
            empty, [({"text/plain": f"<display without content; left out: {text}>"}, text.split(", ")) for text in texts]
        )
        self.assertEqual(excluded, ({"text/markdown": "m"}, []))

    def test_large_values_are_cut_or_left_out(self):
        source = (
            "class Large:\n"
            "    def _repr_html_(self): return 'x' * (5 << 20)\n"
            "    def _repr_markdown_(self): return 'y' * (3 << 20)\n"
            "    def _repr_svg_(self): return 'z' * (2 << 20)\n"
            "    def __repr__(self): return 'r' * (1 << 20)\n"
            "display(Large())\n"
            "display(b'b' * (64 << 20), list(range(10 ** 6)), [[[[0] * 1000] * 1000] * 1000] * 1000)"
        )
        (data, left_out), (raw, _), (numbers, _), (nested, _) = self.bundles(source)
        self.assertEqual(sorted(data), ["image/svg+xml", "text/plain"])
        self.assertEqual(sorted(left_out), ["text/html", "text/markdown"])
        for each in (data, raw, numbers, nested):
            self.assertLess(len(each["text/plain"]), 17_000)

    def test_more_than_a_run_may_show_is_told_once(self):
        frames = self.shown("for n in range(200): display(n)")
        self.assertEqual([frame["type"] for frame in frames], ["display"] * 100 + ["displays_over"])
        source = "class Large:\n    def _repr_html_(self): return 'x' * (3 << 20)\nfor n in range(9): display(Large())"
        frames = self.shown(source)
        sizes = [sum(map(len, frame["data"].values())) for frame in frames if frame["type"] == "display"]
        self.assertLessEqual(sum(sizes), 16 << 20)
        self.assertEqual([frame["left_out"] for frame in frames[5:]], [["text/html"]] * 4)

    def test_a_picture_in_a_result_is_shown_once_and_named(self):
        frames = self.shown(PICTURE + "p = Picture()\nemit_result({'chart': p, 'n': 1})")
        self.assertEqual([frame["type"] for frame in frames], ["display", "final_result"])
        self.assertEqual(frames[1]["data"], {"chart": {"display": 0, "text": "a picture"}, "n": 1})

    def test_what_is_no_picture_is_refused_in_a_result(self):
        source = "class Rich:\n    def _repr_html_(self): return 'x'\nemit_result(Rich())"
        frames, ending = forked.run(source)
        self.assertEqual([frame["type"] for frame in frames], ["error"])
        self.assertIn("a value of type __main__.Rich cannot be sent as JSON", frames[0]["message"])

    def test_the_names_of_ipython_work_without_it(self):
        source = (
            "from sandglass_harness.script import show_hooks\n"
            "import sys\n"
            "sys.path[:] = [path for path in sys.path if 'site-packages' not in path]  # where there may be a real one\n"
            "show_hooks.install()\n"
            "from IPython.display import display as show, HTML, Image, JSON, clear_output, publish_display_data\n"
            "from IPython import get_ipython\n"
            "import IPython.core.display\n"
            "assert get_ipython() is None and show is display\n"
            "show(HTML('<i>x</i>'), Image(b'\\x89PNG\\r\\n'), Image(url='https://example.com/a.png'), JSON({'a': 1}))\n"
            "publish_display_data({'text/plain': 'p'})\n"
            "try:\n    import IPython.terminal\nexcept ModuleNotFoundError as error: emit_log(str(error))"
        )
        *shown, log = self.shown(source)
        kinds = [sorted(frame["data"]) for frame in shown]
        want = [["text/html"], ["image/png"], [], ["application/json"], []]
        self.assertEqual(kinds, [sorted([*each, "text/plain"]) for each in want])
        self.assertEqual(log["message"], "No module named 'IPython.terminal'")

    def test_a_deadline_in_a_method_ends_the_script(self):
        source = "class Slow:\n    def _repr_html_(self):\n        while True: pass\ndisplay(Slow())\nemit_log('after')"
        frames, ending = forked.run(source, timeout=0.2)
        self.assertEqual((ending[0], [frame["type"] for frame in frames]), ("timed-out", ["error"]))
