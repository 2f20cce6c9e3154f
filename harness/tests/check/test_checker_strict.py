import sys
import unittest

from . import checking

REFUSED = [
    "import os",
    "from os import path",
    "import json.decoder",
    "from json import codecs",
    "from json import decoder",
    "import json\njson.decoder.scanner",
    "import json as j\nj.codecs",
    "import uuid\nuuid.os",
    "import random\nrandom._os",
    "from random import _os",
    "import collections\ncollections.abc._sys",
    "import typing\ntyping.get_type_hints(int)",
    "from typing import *",
    "import string\nstring.Formatter()",
    "x.__class__",
    "def f(): pass\nf.__globals__",
    'getattr(1,"__class__")',
    'getattr(1,"_"+"_class__")',
    'n="__class__"\ngetattr(1,n)',
    'import json\ngetattr(json,"codecs")',
    '"{0.__class__}".format(1)',
    'str.format("{0.__class__}",1)',
    't="{0.__class__}"\nt.format(1)',
    'f="{0.__class__}".format\nf(1)',
    '"{0[__class__]}".format(1)',
    '"{a.b}".format_map({})',
    '"{:{0.__class__}}".format(1)',
    'type("X",(),{})',
    "type(*[1])",
    "class X(metaclass=type): pass",
    "class M(type): pass",
    "class X(**{}): pass",
    "match 1:\n  case P(1): pass\n",
    "match 1:\n  case object(__class__=c): pass",
    "match 1:\n  case P(gi_frame=c): pass",
    "__x = 1",
    "def __x(): pass",
    "class C:\n  __eq = 1",
    "class C:\n  def __x(self): pass",
    "for __x in []: pass",
    "import math as __m",
    "def f(__x): pass",
    "lambda __x: 1",
    "try: pass\nexcept E as __x: pass",
    "match 1:\n  case __x: pass",
    "[0 for __x in []]",
    "global __x",
    "del __x",
    "print(__builtins__)",
    '__import__("os")',
    'x: eval("1") = 1',
    'def f(x: eval("1")): pass',
    "def f(x=eval): pass",
    "@eval\ndef f(): pass",
    "lambda x=open: x",
    'f"{open}"',
    "[open for _ in []]",
    "class C:\n  x = input",
    "g.gi_frame",
    "e.tb_next",
    "c.co_code",
    "f.f_back",
    "int.mro()",
    "x.__dict__",
    'super().__getattribute__("x")',
    "a._private",
    "class C:\n  def m(self, other): return other._x",
    "import time, sys",
    "import builtins",
    "from builtins import eval",
    "from json import loads as eval",
    "from . import x",
    "from .x import y",
    "import os as math",
    "globals()",
    "x.__init__()",
    "class A:\n  def __reduce__(self): pass",
    "def f():\n  global __builtins__",
    "import importlib",
    "import pickle",
    "import inspect",
    "import ctypes",
    "import subprocess",
    "import operator",
    'setattr(1,"a",1)',
    "vars()",
    'compile("1","a","eval")',
    "breakpoint()",
    'open("x")',
    "import re\nre.copyreg",
    "import heapq\nheapq.__doc__",
    "import base64\nbase64.binascii",
    "import textwrap\ntextwrap.re",
    "import json\nj = json\nj.codecs",
    "import json\njson.codecs\njson = None",
    "from collections import abc\nabc._sys",
    "def f(input): pass",
]

ADMITTED = [
    "import json, math, typing, copy, dataclasses, enum, heapq, bisect, fractions, re, datetime, collections, itertools, functools, statistics, random, string, decimal, textwrap, time, uuid, hashlib, base64",  # noqa: E501 - one script
    "\n".join(
        [
            "from collections.abc import Mapping",
            "import collections.abc",
            "collections.abc.Mapping",
            "import collections",
            "collections.Counter",
        ]
    ),
    "from __future__ import annotations",
    "\n".join(
        [
            "class A:",
            "  def __init__(self): self._x = 1",
            "  def __eq__(self, o): return self._x == 1",
            "  @property",
            "  def x(self): return self._x",
            "  @classmethod",
            "  def make(cls): return cls._y",
            "class B(A):",
            "  def __init__(self):",
            "    super().__init__()",
            "    self._z = [self._x for _ in range(3)]",
        ]
    ),
    'if __name__ == "__main__": pass',
    "_x = 1\n_ = 2",
    '"{0} {a} {b[x]} {c.name}".format(1, a=1, b={}, c=A) if False else 1\nclass A: pass',
    'match [1]:\n  case [int(x), str(y)]: pass\n  case {"a": int(v)}: pass\n',
    "type(1) is int\nisinstance(1, type)",
    'getattr({}, "items")',
    'import json\njson.loads("1"); json.JSONDecodeError',
    "from typing import Any, Optional, TypedDict\nfrom dataclasses import dataclass, field",
    'x = {"a": 1}\nx["__class__"] = "eval"\nprint("open", "__import__")',
    'import re\nre.compile("x")',
    "import math\nmath.sqrt(2); math.pi",
    "import time\ntime.time(); time.perf_counter()",
    "import random\nrandom.seed(1); random.choice([1])",
    "import string\nstring.ascii_letters",
    "from decimal import Decimal, getcontext\ngetcontext().prec = 5",
    "import datetime\ndatetime.datetime.now(datetime.timezone.utc)",
    "\n".join(
        [
            "import functools",
            "functools.lru_cache; functools.partial; functools.cached_property; functools.singledispatch",
        ]
    ),
    'import hashlib\nhashlib.sha256(b"x").hexdigest(); hashlib.md5',
    "import uuid\nuuid.uuid4(); uuid.UUID",
    "\n".join(
        [
            "import enum",
            "class E(enum.Enum):",
            "  A = enum.auto()",
            "  @classmethod",
            "  def _missing_(cls, v): return cls.A",
        ]
    ),
    "import itertools\nitertools.chain.from_iterable([])",
    "import copy\ncopy.deepcopy(1)",
    "import heapq, bisect\nheapq.heappush([],1); bisect.insort([],1)",
    "import statistics\nstatistics.mean([1]); statistics.StatisticsError",
    'import textwrap\ntextwrap.dedent("x")',
    'import base64\nbase64.b64encode(b"x")',
    "import fractions\nfractions.Fraction(1)",
    'try:\n  raise ValueError("x")\nexcept ValueError as e:\n  print(e.args)',
    "\n".join(
        [
            "class Node:",
            "  def __lt__(self, o): return True",
            "  def __iter__(self): return iter([])",
            "  def __enter__(self): return self",
            "  def __exit__(self, *a): return None",
        ]
    ),
    "import typing\ntyping.NamedTuple; typing.List; typing.Callable; typing.TYPE_CHECKING; typing.cast",
    "import decimal\ndecimal.ROUND_HALF_UP; decimal.Decimal",
]


class StrictTest(unittest.TestCase):
    def test_what_reaches_further_than_a_script_has_to_is_refused(self):
        for script in REFUSED:
            with self.subTest(script=script):
                found = checking.check(script, policy="strict")
                self.assertTrue([each for each in found if each["code"].startswith("forbidden_")], found)

    def test_ordinary_scripts_are_admitted(self):
        for script in ADMITTED:
            with self.subTest(script=script):
                self.assertEqual(checking.check(script, policy="strict"), [])

    def test_modules_that_the_host_allows_may_be_imported_and_used_by_public_names(self):
        script = "import numpy.linalg\nimport numpy as np\nfrom numpy import array\nnp.array([1])\nnumpy.linalg.norm"
        options = {"policy": "strict", "allow_modules": ["numpy"]}
        self.assertEqual(checking.check(script, **options), [])
        self.assertEqual(checking.codes("import numpy as np\nnp._core", **options), [("forbidden_attribute", 2)])
        self.assertEqual(checking.codes("from numpy import _core", **options), [("forbidden_attribute", 1)])

    def test_a_module_inside_another_that_is_allowed_brings_in_no_other(self):
        options = {"policy": "strict", "allow_modules": ["os.path"]}
        self.assertEqual(checking.check("from os.path import join\nimport os.path as p\np.join('a')", **options), [])
        self.assertEqual(checking.codes("import os.path", **options), [("forbidden_import", 1)])

    def test_with_files_open_and_the_modules_for_files_are_admitted(self):
        script = "\n".join(
            [
                "import csv, io, glob",
                "from pathlib import Path",
                'with open("in/a.csv") as lines: rows = list(csv.DictReader(lines))',
                'Path("out").mkdir(exist_ok=True)',
                'open("out/b.txt", "w").write(str(rows))',
            ]
        )
        self.assertEqual(checking.check(script, policy="strict", files=True), [])
        found = checking.check(script, policy="strict")
        self.assertEqual({each["code"] for each in found}, {"forbidden_import", "forbidden_name"})
        self.assertIn("There are no files here", found[-1]["hint"])
        for refused in ("import os", "import pathlib\npathlib.os", "def f(open): pass", 'eval("1")'):
            with self.subTest(script=refused):
                self.assertTrue(checking.check(refused, policy="strict", files=True))

    @unittest.skipIf(sys.version_info < (3, 11), "except* came with Python 3.11; before, it is a syntax error")
    def test_except_star_is_refused(self):
        script = "try:\n    pass\nexcept* ValueError:\n    pass"
        self.assertEqual(checking.codes(script, policy="strict"), [("forbidden_syntax", 1)])
