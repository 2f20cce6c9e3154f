"""Scripts without a mistake that a careless checker refuses."""

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
import asyncio
async def main():
    t = asyncio.create_task(asyncio.sleep(0))
    await t
    f = get_price(sku='A')
    f.add_done_callback(print)
    print(await f)
    done, pending = await asyncio.wait([f])
asyncio.run(main())
""",
    """
import asyncio
async def main():
    fs = [get_price(sku=s) for s in 'ab']
    for f in asyncio.as_completed(fs):
        print(await f)
    send_email(to='a', subject='b', body='c')
    x = await asyncio.wait_for(count_orders(), timeout=3)
    print(x + 1)
asyncio.run(main())
""",
    """
orders = search_orders(query='', status='open')
for o in orders:
    o['margin'] = 1
for o in orders:
    print(o['margin'], o.margin)
""",
    """
orders = search_orders(query='', status='open')
orders.append({'id': 'x', 'extra': 1})
print(orders[-1]['extra'])
""",
    """
def enrich(o):
    o.update(extra=1)
c = get_customer(customer_id='x')
enrich(c)
print(c['extra'])
""",
    """
def enrich(o, k):
    o[k] = 1
c = get_customer(customer_id='x')
enrich(c, 'extra')
print(c['extra'])
""",
    """
c = get_customer(customer_id='x')
c |= {'extra': 1}
print(c['extra'])
""",
    """
c = {**get_customer(customer_id='x'), 'extra': 1}
print(c['extra'], c.get('nope'))
""",
    """
n = count_orders()
print(n.bit_length(), n.real, -n, n ** 2, f'{n:>10,}', n % 2, '%d' % n, 'x' * n, [0] * n, n * 'x', n == 'x', n in [1], round(n), float(n), divmod(n, 2), max(n, 3), str(n)[0])
""",
    """
p = get_price(sku='x')
print(f'{p:.2f}', p.is_integer(), int(p), p / 2, sum([p]), max([p]), min(p, 2), [p] + [1], {p: 1}[p])
""",
    """
regions = list_regions()
print(regions[0].upper(), regions + ['x'], 'x' in regions, regions * 2, sorted(regions)[0][0], regions[0] + 'a', regions[:2], ' '.join(regions), *regions)
""",
    """
regions = list_regions()
regions = {r: 1 for r in regions}
print(regions['a'])
""",
    """
f = search_orders
print(f.__name__, f)
r = f('', 'open')
""",
    """
t = count_orders
if t:
    print(t())
""",
    """
tools = [count_orders, list_regions]
for t in tools:
    t()
print({'a': count_orders}['a'](), (list_regions or count_orders)())
""",
    """
print(isinstance(count_orders, type), callable(count_orders), count_orders is None, count_orders == list_regions, id(count_orders)) if False else None
""",
    """
get = get_customer if True else None
get(customer_id='C')
""",
    """
for fn in (list_regions, count_orders):
    print(fn.__name__, fn())
""",
    """
d = dict(status='open')
print(search_orders('', **d), search_orders(query='', status='open', limit=5.0), search_orders('', 'open', limit=None))
""",
    """
send_email(to='a', subject='b', body='c', cc=None)
send_email(to='a', subject='b', body='c', cc=[])
send_email('a', 'b', 'c', ('x','y'))
send_email(to=f'{1}', subject=str(3), body='a' 'b', cc=list('ab'))
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
lst = [count_orders(region=r) for r in list_regions()]
x = {k: v for k, v in zip('ab', lst)}
print(x['a'])
""",
    """
raise SystemExit(0)
""",
    """
import functools
@functools.cache
def f(x): return get_price(sku=x)
print(f('a') + 1)
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
try:
    search_orders(bad=1)
except TypeError as e:
    print(e)
""",
    """
try:
    x = 1/0
except (ZeroDivisionError, ToolError) as e:
    print(getattr(e, 'code', None), describe_tool('get_price'), describe_tool(get_price))
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
status = 'late'
if count_orders(status=status): pass
result = count_orders() if status else None
print(result['x'] if isinstance(result, dict) else result)
""",
    """
def gen():
    yield from search_orders('', 'open')
async def ag():
    for o in await search_orders('', 'open'):
        yield o
async def main():
    async for o in ag(): print(o.id)
    print([o async for o in ag()])
import asyncio
asyncio.run(main())
""",
    """
x = 'a b'
π = 3
print(π, ｘ)
""",
    """
import threading
results = {}
def work(n): results[n] = get_price(sku=n)
ts = [threading.Thread(target=work, args=(n,)) for n in 'ab']
for t in ts: t.start()
for t in ts: t.join()
print(results['a'] + results['b'])
""",
    """
customer = get_customer(customer_id='C')
for k in customer: print(k.upper(), customer[k])
for k, v in customer.items(): pass
print(len(customer), 'name' in customer, dict(customer), customer | {'a': 1}, customer == {}, sorted(customer), customer.keys() & {'a'}, list(customer.values())[0], customer.copy()['name'])
""",
    """
o = search_orders('', 'open')[0]
print(o['due'][:4] if o['due'] else '', o.due and o.due.split('-'), (o.due or '')[0], o['total'] * o['quantity'], f"{o['total']:.2f}", o.id + '/' + o.sku, o['quantity'] > 3)
""",
    """
def search(query, **kw): return search_orders(query, **kw)
search('x', status='open')
""",
    """
class Box:
    run = search_orders
    def go(self): return Box.run('', 'open')
Box().go()
""",
    """
emit_log('x', 'warning')
emit_log(message='x', level='debug')
emit_intermediate(label='a', data=None)
emit_intermediate('a', [1])
emit_result(data=3)
emit_log(3)
""",
    """
print(f"{list_regions()!r:>20} {get_customer('C')!s:.3} {count_orders!r:<3}")
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
