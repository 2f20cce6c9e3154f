import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import json
import pathlib
import time
import types
import typing
import unittest
import uuid

from sandglass_harness.script.convert import ConversionError, to_json, to_json_with_nulls


@dataclasses.dataclass
class Point:
    x: int
    y: "int" = 2
    kind: typing.ClassVar[str] = "point"


@dataclasses.dataclass
class Line:
    start: Point
    end: Point


Pair = collections.namedtuple("Pair", "left right")


class Colour(enum.Enum):
    RED = "red"
    BOTH = ("a", 1)


class Level(enum.IntEnum):
    HIGH = 3


class Text(str):
    def __str__(self):
        return "a lie"


class Whole(int):
    pass


class Real(float):
    pass


class Mapping(dict):
    def items(self):
        raise AssertionError("a subclass's items() is not asked")


class ConvertTest(unittest.TestCase):
    """HA-13: the conversion of each kind of value by emit_result."""

    maxDiff = None

    def test_plain_json_stays_as_it_is(self):
        value = {"a": [None, True, False, 0, -1, 2**53 - 1, -(2**53 - 1), 1.5, -0.0, 1e308, "ü\ud800", []], "": {}}
        self.assertEqual(to_json(value), value)

    def test_a_copy_is_made(self):
        value = {"a": [1]}
        copy = to_json(value)
        value["a"].append(2)
        self.assertEqual(copy, {"a": [1]})

    def test_every_rule(self):
        tz = datetime.timezone(datetime.timedelta(hours=2))
        rows = [
            ((1, (2,)), [1, [2]]),
            (range(3), [0, 1, 2]),
            (collections.deque([1, 2]), [1, 2]),
            ({"b": 1, "a": 2}.keys(), ["b", "a"]),
            ({"b": 1, "a": 2}.values(), [1, 2]),
            ({3, 1, 2}, [1, 2, 3]),
            (frozenset({"b", "a"}), ["a", "b"]),
            (b"\x00\xff", "AP8="),
            (bytearray(b"ab"), "YWI="),
            (memoryview(b"ab"), "YWI="),
            (datetime.datetime(2024, 2, 29, 1, 2, 3, 4, tz), "2024-02-29T01:02:03.000004+02:00"),
            (datetime.datetime(2024, 2, 29), "2024-02-29T00:00:00"),
            (datetime.date(2024, 2, 29), "2024-02-29"),
            (datetime.time(1, 2), "01:02:00"),
            (datetime.timedelta(days=1, milliseconds=500), 86400.5),
            (decimal.Decimal("1.10"), "1.10"),
            (decimal.Decimal("NaN"), "NaN"),
            (fractions.Fraction(1, 3), "1/3"),
            (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
            (pathlib.PurePosixPath("/a/b"), "/a/b"),
            (ipaddress.ip_address("10.0.0.1"), "10.0.0.1"),
            (ipaddress.ip_address("::1"), "::1"),
            (Colour.RED, "red"),
            (Colour.BOTH, ["a", 1]),
            (Level.HIGH, 3),
            (Pair(1, [2]), {"left": 1, "right": [2]}),
            (Line(Point(1), Point(3, 4)), {"start": {"x": 1, "y": 2}, "end": {"x": 3, "y": 4}}),
            (types.SimpleNamespace(a=1), {"a": 1}),
            (types.MappingProxyType({"a": (1,)}), {"a": [1]}),
            (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
            (collections.defaultdict(list, a=[1]), {"a": [1]}),
            (collections.Counter("aab"), {"a": 2, "b": 1}),
            (collections.ChainMap({"a": 1}, {"b": 2}), {"a": 1, "b": 2}),
            (collections.UserDict(a=1), {"a": 1}),
            (collections.UserList([1]), [1]),
            (Text("text"), "text"),
            (Whole(7), 7),
            (Real(1.5), 1.5),
            (Mapping(a=1), {"a": 1}),
        ]
        for value, want in rows:
            with self.subTest(repr(value)):
                got = to_json(value)
                self.assertEqual(got, want)
                self.assertEqual(json.loads(json.dumps(got, allow_nan=False)), want)

    def test_what_comes_out_has_plain_types_only(self):
        kinds = {type(v) for v in to_json([Text("a"), Whole(1), Real(1.5), Level.HIGH, Mapping(), Pair(1, 2)])}
        self.assertEqual(kinds, {str, int, float, dict})

    def test_keys_become_text(self):
        rows = [
            ({1: "a", True and 2: "b"}, {"1": "a", "2": "b"}),
            ({None: 1}, {"null": 1}),
            ({True: 1, False: 2}, {"true": 1, "false": 2}),
            ({1.5: 1}, {"1.5": 1}),
            ({datetime.date(2024, 1, 2): 1}, {"2024-01-02": 1}),
            ({Colour.RED: 1}, {"red": 1}),
            ({Text("k"): 1}, {"k": 1}),
        ]
        for value, want in rows:
            with self.subTest(repr(value)):
                self.assertEqual(to_json(value), want)

    def test_every_refusal_names_path_and_type(self):
        itself = []
        itself.append({"again": itself})
        deep = []
        for _ in range(400):
            deep = [deep]
        beyond = "an integer beyond 2**53 would lose digits in JSON; send str(value)"
        rows = [
            (2**53, f"$: {beyond}"),
            ({"a": [1, -(2**53)]}, f"$.a[1]: {beyond}"),
            ([Whole(2**60)], f"$[0]: {beyond}"),
            (float("nan"), "$: nan is not a JSON number; send None or str(value)"),
            ({"a": {"b": (float("inf"),)}}, "$.a.b[0]: inf is not a JSON number; send None or str(value)"),
            ([Real("-inf")], "$[0]: -inf is not a JSON number; send None or str(value)"),
            ([0, object()], "$[1]: a value of type object cannot be sent as JSON; convert it first"),
            (1j, "$: a value of type complex cannot be sent as JSON; convert it first"),
            (len, "$: a value of type builtin_function_or_method cannot be sent as JSON; convert it first"),
            (Point, "$: a value of type type cannot be sent as JSON; convert it first"),
            (Line(Point(1), Point(2, 3j)), "$.end.y: a value of type complex cannot be sent as JSON; convert it first"),
            (iter([]), "$: a value of type list_iterator cannot be sent as JSON; convert it first"),
            (itself, "$[0].again: the value contains itself"),
            ({(1, 2): 3}, "$: a key of type tuple cannot be sent as JSON; use text"),
            ({"x": {float("nan"): 3}}, "$.x: a key of type float cannot be sent as JSON; use text"),
            ({2**53: 3}, "$: a key of type int cannot be sent as JSON; use text"),
            ({"m": {1: "a", "1": "b"}}, "$.m: two keys become '1'"),
            (datetime.timedelta.max.__class__, "$: a value of type type cannot be sent as JSON; convert it first"),
        ]
        for value, want in rows:
            with self.subTest(want), self.assertRaises(ConversionError) as caught:
                to_json(value)
            self.assertEqual(str(caught.exception), want)
        with self.assertRaisesRegex(ConversionError, r"nested deeper than 200 levels$"):
            to_json(deep)

    def test_a_nan_becomes_none_and_its_path_is_reported(self):
        nan = float("nan")
        nulls = {"count": 3, "paths": ["$.a[1]", "$.a[2].b", "$.c"]}
        got = to_json_with_nulls({"a": [1, Real("nan"), {"b": nan, "n": 1.5}], "c": -nan, "d": None})
        self.assertEqual(got, ({"a": [1, None, {"b": None, "n": 1.5}], "c": None, "d": None}, nulls))
        self.assertEqual(to_json_with_nulls(nan), (None, {"count": 1, "paths": ["$"]}))
        self.assertEqual(to_json_with_nulls({"a": 1.0}), ({"a": 1.0}, None))

    def test_of_many_nans_the_first_paths_are_reported(self):
        _, nulls = to_json_with_nulls([float("nan")] * 1000)
        self.assertEqual(nulls, {"count": 1000, "paths": [f"$[{n}]" for n in range(5)]})
        _, nulls = to_json_with_nulls({"k" * 5000: {"k" * 5000: [float("nan")]}})
        self.assertEqual(nulls["paths"], ["$" + f".{'k' * 80}" * 2 + "[0]"])

    def test_infinities_are_refused_beside_nans(self):
        with self.assertRaisesRegex(ConversionError, r"^\$\[1\]: inf is not a JSON number"):
            to_json_with_nulls([float("nan"), float("inf")])

    def test_the_name_of_a_class_of_a_module_is_whole(self):
        with self.assertRaisesRegex(ConversionError, r"^\$: a value of type threading\.Event cannot be sent"):
            import threading

            to_json(threading.Event())

    def test_a_refusal_stays_short_whatever_the_path_is(self):
        value = object()
        for n in range(150):
            value = {"k" * 5000: value}
        with self.assertRaises(ConversionError) as caught:
            to_json(value)
        self.assertLess(len(str(caught.exception)), 1000)

    def test_two_hundred_levels_pass_and_two_hundred_and_one_do_not(self):
        def nested(levels):
            value = 1
            for _ in range(levels):
                value = [value]
            return value

        self.assertEqual(to_json(nested(200)), nested(200))
        with self.assertRaises(ConversionError):
            to_json(nested(201))

    def test_the_same_object_twice_is_not_a_cycle(self):
        shared = [1]
        self.assertEqual(to_json([shared, {"a": shared}]), [[1], {"a": [1]}])

    def test_a_big_value_costs_linear_time(self):
        def cost(count):
            value = [{"a": n, "b": str(n)} for n in range(count)]
            started = time.process_time()
            to_json(value)
            return time.process_time() - started

        cost(1000)
        self.assertLess(cost(64_000), 16 * 10 * max(cost(4_000), 0.002))

    def test_a_value_that_raises_when_it_is_read_raises_its_own_error(self):
        class Broken(collections.UserDict):
            def __iter__(self):
                raise LookupError("broken")

        with self.assertRaises(LookupError):
            to_json(Broken())
