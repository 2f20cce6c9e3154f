/** What scripts do often. V8's optimised machine code of it is kept with a snapshot. */
const SCRIPT = `
import asyncio, collections, csv, datetime, functools, io, itertools, json, math, random, re, statistics, string, traceback
from dataclasses import dataclass

@dataclass
class Order:
    number: int
    customer: str
    total: float = 0.0

class Basket(dict):
    def __missing__(self, key):
        return key

def fail(depth):
    if depth == 0:
        raise ValueError(f"nothing at {depth!r}")
    return fail(depth - 1)

for round in range(3):
    rows = [{"n": n, "name": f"row {n:03}", "ratio": n / 7, "tags": ["a", None, True]} for n in range(40)]
    same = json.loads(json.dumps(rows, indent=1, sort_keys=True))
    total = sum(row["ratio"] for row in same if row["n"] % 2) + math.sqrt(2.0)
    names = sorted((row["name"] for row in same), key=lambda name: name[::-1], reverse=True)
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["n"] % 5].append(row)
    counts = collections.Counter(letter for name in names for letter in name).most_common(3)
    with open("table.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, ["n", "name"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    with open("table.csv") as file:
        table = list(csv.DictReader(file))
    text = " ".join(re.findall(r"(\\w+) 0*(\\d+)", "; ".join(names))[0]).upper().replace("R", "r").split()
    when = datetime.datetime(2024, 2, 29, 12, 30) + datetime.timedelta(days=round)
    spread = statistics.pstdev([row["ratio"] for row in rows])
    orders = [Order(n, string.ascii_letters[n], round * 1.5) for n in range(10)]
    squares = {n: n ** 2 for n in range(50)} | dict(zip("abc", itertools.count()))
    print(f"{total:.2f} {when:%Y-%m-%d} {spread:8.3f} {orders[0]} {text} {Basket()['x']}")
    try:
        fail(4)
    except ValueError as error:
        shown = traceback.format_exc()
    big = functools.reduce(lambda a, b: a * b, range(1, 60)) // 7 ** 5
    picked = random.Random(round).sample(range(100), 5), {frozenset((1, 2)), frozenset((2, 1))}
    answer = rehearsed(text="a", number=round, rows=rows[:3])
    for number in range(20):
        answer = rehearsed(text="a", number=number)
    emit_log(f"round {round}", level="info")
    emit_intermediate("groups", {str(key): len(value) for key, value in groups.items()})

async def both():
    return await asyncio.gather(rehearsed(text="b", number=1), rehearsed(text="c", number=2))

asyncio.run(both())
emit_result({"total": total, "names": names[:5], "table": table[:2], "counts": counts, "answer": answer})
`

/** The request of the training run, as the script's process takes it. Its tool answers with its arguments. */
export const TRAINING: object = {
  script: SCRIPT,
  inputs: { rows: [1, 2.5, null, { a: 'b' }] },
  secrets: {},
  timeout_text: '60',
  tools: [
    {
      name: 'rehearsed',
      params: [
        { name: 'text', type: 'str', required: true, nullable: false },
        { name: 'number', type: 'int', required: false, nullable: false },
        { name: 'rows', type: 'list[dict]', required: false, nullable: false },
      ],
      more: false,
      returns: 'dict',
      doc: '',
      types: '',
    },
  ],
  check: null,
}
