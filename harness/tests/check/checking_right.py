"""Scripts of plain Python without a mistake that a careless checker refuses."""

RIGHT = [
    """
def f():
    x: Undefined = 1
    return x
f()
""",
    """
def f(n):
    if n: return f(n-1)
f(3)
print(f.__name__, f.cache if hasattr(f,'cache') else 0)
""",
    """
try:
    unicode
except NameError:
    unicode = str
print(unicode)
""",
    """
import sys
if sys.version_info >= (3, 99):
    import nothinglikeit
""",
    """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import nothinglikeit
def f(x: 'nothinglikeit.X'): pass
""",
    """
print([y := 1, y**2])
print(any((hit := n) > 2 for n in range(4)), hit)
""",
    """
def f():
    global g
    g = 1
f()
print(g)
""",
    """
import xml.etree.ElementTree as ET
import os.path, concurrent.futures, importlib.util
os.path.join('a'); concurrent.futures.wait; importlib.util.find_spec
""",
    """
import collections
collections.abc.Mapping
import json
json.decoder.JSONDecodeError
import json.tool
json.tool
""",
    """
import math
math.answer = 42
print(math.answer)
""",
    """
import math
if hasattr(math, 'cbrtx'):
    print(math.cbrtx(3))
""",
    """
import math
try:
    f = math.nope
except AttributeError:
    f = None
""",
    """
from dataclasses import dataclass
@dataclass
class P:
    x: int
    y: 'Q' = None
p = P(1)
match p:
    case P(x=1): print('one')
    case P(x=a, y=b) | P(x=b, y=a): print(a, b)
""",
    """
exec('q = 1')
print(q)
""",
    """
globals()['q'] = 1
print(q)
""",
    """
print(locals())
for name in list(globals()): pass
""",
    """
import builtins
builtins.q = 3
print(q)
""",
    """
raise SystemExit(0)
""",
    """
def outer():
    def inner():
        nonlocal v
        v = 2
    v = 1
    inner()
    return v
outer()
""",
    """
import json
json = json.loads('{}')
print(json.get)
""",
    """
from datetime import datetime
import datetime as dt
print(datetime.now(), dt.datetime.now(), dt.date.today())
""",
    """
import datetime
from datetime import datetime
print(datetime.now())
""",
    """
from os import path, environ
from os.path import join
import os
os.environ.get('x')
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from xml.dom import minidom
from email.mime.text import MIMEText
""",
    """
with open('x', 'w') as f:
    f.write('x')
import pathlib
print(pathlib.Path('x').read_text())
""",
    """
x = 'a b'
π = 3
print(π, ｘ)
""",
]

RIGHT_FROM_3_11 = [
    """
try:
    raise ExceptionGroup("x", [ValueError()])
except* ValueError as group:
    print(group)
""",
]

RIGHT_FROM_3_12 = [
    """
def f[T](x: T) -> T:
    return x
class C[T]:
    def m(self, x: T) -> list[T]:
        return [x]
type A[K] = dict[K, Undefined]
""",
]
