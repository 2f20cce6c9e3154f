"""Scripts that call tools and helpers, without a mistake that a careless checker refuses."""

RIGHT_WITH_TOOLS = [
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
lst = [count_orders(region=r) for r in list_regions()]
x = {k: v for k, v in zip('ab', lst)}
print(x['a'])
""",
    """
import functools
@functools.cache
def f(x): return get_price(sku=x)
print(f('a') + 1)
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
