import sys
import types
import unittest

from sandglass_harness.script.convert import ConversionError, to_json


class FakeLibrariesTest(unittest.TestCase):
    """The rules for numpy and pandas, by stand-ins of the same shape: test/sandbox/environments/real-index.test.ts has the real ones."""

    def with_module(self, name, **members):
        module = types.ModuleType(name)
        for key, value in members.items():
            setattr(module, key, value)
            if isinstance(value, type):
                value.__module__ = name
        before = sys.modules.get(name)
        sys.modules[name] = module
        self.addCleanup(lambda: sys.modules.__setitem__(name, before) if before else sys.modules.pop(name))
        return module

    def test_numpy_scalars_and_arrays(self):
        class generic:  # noqa: N801 - numpy's own name
            def __init__(self, plain):
                self.plain = plain

            def item(self):
                return self.plain

        class ndarray:  # noqa: N801 - as above
            dtype = types.SimpleNamespace(kind="i")

            def tolist(self):
                return [[1, 2], [3, 4]]

        class datetime64(generic):  # noqa: N801 - as above
            def __str__(self):
                return self.plain

        class timedelta64(generic):  # noqa: N801 - as above
            pass

        self.with_module(
            "numpy",
            generic=generic,
            ndarray=ndarray,
            datetime64=datetime64,
            timedelta64=timedelta64,
            isnat=lambda value: value.plain == "NaT",
        )
        value = [generic(3), generic(1.5), ndarray(), datetime64("2024-01-02"), datetime64("NaT")]
        self.assertEqual(to_json(value), [3, 1.5, [[1, 2], [3, 4]], "2024-01-02", None])
        with self.assertRaisesRegex(ConversionError, r"^\$\[0\]: nan is not a JSON number"):
            to_json([generic(float("nan"))])
        with self.assertRaisesRegex(ConversionError, r"^\$: a value of type .*generic cannot be sent"):
            to_json(generic(generic(1)))


class _Index:
    """An index, as much of it as the conversion reads. `levels` are lists of labels."""

    def __init__(self, *levels, names=None):
        self._levels = levels
        self.names = names or [None] * len(levels)
        self.nlevels = len(levels)
        self.name = self.names[0]

    def get_level_values(self, number):
        return _Index(self._levels[number])

    def tolist(self):
        return list(self._levels[0])

    def isna(self):
        return _Index([item is None or item != item for item in self._levels[0]])


class _RangeIndex(_Index):
    def __init__(self, start, stop, step=1, name=None):
        super().__init__(list(range(start, stop, step)), names=[name])
        self.start, self.step = start, step


class _Series:
    def __init__(self, values, index=None, name=None):
        self._values = values
        self.name = name
        self.index = index or _RangeIndex(0, len(values))

    def tolist(self):
        return list(self._values)

    def isna(self):
        return _Index(self._values).isna()


class _DataFrame:
    def __init__(self, columns, index=None):
        self.columns = list(columns)
        self._values = list(columns.values())
        self.index = index or _RangeIndex(0, len(self._values[0]))

    @property
    def iloc(self):
        return self

    def __getitem__(self, place):
        return _Series(self._values[place[1]])


class PandasShapesTest(unittest.TestCase):
    """HA-13: no index is lost in silence. By stand-ins; RealPandasTest shows the same with the library."""

    def setUp(self):
        kinds = {"Index": _Index, "RangeIndex": _RangeIndex, "Series": _Series, "DataFrame": _DataFrame}
        kinds.update({name: type(name, (), {}) for name in ("Timestamp", "Timedelta", "Interval", "Period")})
        module = types.ModuleType("pandas")
        vars(module).update(kinds)
        for kind in kinds.values():
            kind.__module__ = "pandas"
        before = sys.modules.get("pandas")
        sys.modules["pandas"] = module
        self.addCleanup(lambda: sys.modules.__setitem__("pandas", before) if before else sys.modules.pop("pandas"))

    def test_a_series(self):
        by_country = _Index(["DE", "FR"], names=["country"])
        two_levels = _Index(["DE"], ["x"], names=["country", None])
        rows = [
            (_Series([12.5, 3]), [12.5, 3]),
            (_Series([], _Index([])), {}),
            (_Series([12.5, float("nan")], by_country), {"DE": 12.5, "FR": None}),
            (_Series([1, 2], _RangeIndex(1, 3)), {"1": 1, "2": 2}),
            (_Series([1, 2], _RangeIndex(0, 2, name="id")), {"0": 1, "1": 2}),
            (_Series([1, 2], _Index(["a", "a"])), [{"index": "a", "value": 1}, {"index": "a", "value": 2}]),
            (_Series([1, 2], _Index([1, "1"]), "n"), [{"index": 1, "n": 1}, {"index": "1", "n": 2}]),
            (_Series([1], _Index([None], names=["k"]), "k"), [{"k": None, "value": 1}]),
            (_Series([5], two_levels, "n"), [{"country": "DE", "level_1": "x", "n": 5}]),
        ]
        for value, want in rows:
            with self.subTest(want):
                self.assertEqual(to_json({"v": value}), {"v": want})

    def test_a_frame(self):
        pairs = _Index(["DE", "FR"], ["a", "b"], names=["country", None])
        by_pair = [{"country": "DE", "level_1": "a", "n": 1}, {"country": "FR", "level_1": "b", "n": 2}]
        rows = [
            (_DataFrame({"n": [1, 2]}), [{"n": 1}, {"n": 2}]),
            (_DataFrame({"n": [1]}, _RangeIndex(3, 4)), [{"index": 3, "n": 1}]),
            (_DataFrame({"n": [1]}, _Index(["DE"], names=["country"])), [{"country": "DE", "n": 1}]),
            (_DataFrame({"index": [1]}, _Index(["DE"])), [{"level_0": "DE", "index": 1}]),
            (_DataFrame({"n": [1, 2]}, pairs), by_pair),
            (pairs, [["DE", "a"], ["FR", "b"]]),
        ]
        for value, want in rows:
            with self.subTest(want):
                self.assertEqual(to_json(value), want)

    def test_an_index_with_the_name_of_a_column_and_infinities_are_refused(self):
        rows = [
            (
                _DataFrame({"day": [1]}, _Index(["x"], names=["day"])),
                "$: two levels of the index, or a level and a column, have the name 'day'; rename one",
            ),
            (_Series([float("inf")], _Index(["a"])), "$.a: inf is not a JSON number; send None or str(value)"),
        ]
        for value, want in rows:
            with self.subTest(want), self.assertRaises(ConversionError) as caught:
                to_json(value)
            self.assertEqual(str(caught.exception), want)
