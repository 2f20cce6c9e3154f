import assert from 'node:assert/strict'
import { ALL, type FreshCase, LINUX, settlesWithin } from '../fresh-case.ts'

const FLOOD = 'output is counted in the sandbox and on the host; neither reads ahead of its reader'

/** Attacks with floods of output, values that JSON cannot represent, and huge or endless error texts. */
export const FLOODING: readonly FreshCase[] = [
  {
    id: 'LOAD-02',
    claim: FLOOD,
    title: 'emits values that JSON cannot represent, or that are too large',
    engines: ALL,
    script: String.raw`
deep = []
for _ in range(100000):
    deep = [deep]
ring = {}; ring["me"] = ring
class Hostile(dict):
    def items(self): raise ValueError("no")
    def __iter__(self): raise ValueError("no")
given = [float("nan"), float("inf"), 10 ** 5000, -(2 ** 53), deep, ring, {(1,): 2}, {1: 1, "1": 2}, object(), {10 ** 5000: 1}, type, lambda: 1]
emit_result([tried(emit_intermediate, "x", one) for one in given])
`,
    // A NaN arrives as null, with a warning.
    expected: {
      status: 'completed',
      data: ['done', ...Array<unknown>(11).fill('ConversionError')],
      warnings: ['nan_as_null'],
    },
  },
  {
    id: 'LOAD-03',
    claim: FLOOD,
    title: 'raises an error whose __str__ hangs',
    engines: ALL,
    options: { limits: { executionTimeoutSec: 1 } },
    script: String.raw`
class Hangs(Exception):
    def __str__(self):
        while True:
            pass
    __repr__ = __str__
raise Hangs
`,
    expected: { status: 'timed-out', data: null },
    host: settlesWithin(4000),
  },
  {
    id: 'LOAD-04',
    claim: FLOOD,
    title: 'raises an error with a text of 50 MB, a chain of 500 causes, notes, a group and a long line',
    engines: ALL,
    script: String.raw`
error = ValueError("x" * 50_000_000)
for _ in range(500):
    try:
        raise KeyError("y" * 10000) from error
    except KeyError as next_error:
        error = next_error
if hasattr(error, "add_note"):
    for _ in range(1000):
        error.add_note("z" * 10000)
raise error
`,
    expected: { status: 'failed', data: null },
    host: ({ first }) => {
      const told = JSON.stringify([first.result?.error, first.result?.traceback]).length
      assert.ok(told < (1 << 20) + 4096, `${told} characters were told`)
    },
  },
  {
    id: 'LOAD-05',
    claim: FLOOD,
    title: 'floods logs, intermediates, standard output and error at once from many threads',
    engines: LINUX,
    script: String.raw`
import threading
def flood(act):
    while True:
        act()
for act in (lambda: emit_log("x" * 100), lambda: emit_intermediate("l", "x" * 100), lambda: os.write(1, b"x" * 4096), lambda: os.write(2, b"x" * 4096)):
    threading.Thread(target=flood, args=(act,), daemon=True).start()
time.sleep(600)
`,
    expected: { status: 'output-limit', data: null },
    host: ({ first }) => {
      settlesWithin(10_000)({ first })
      assert.ok(JSON.stringify(first.result).length < 4 << 20)
    },
  },
  {
    id: 'LOAD-06',
    claim: FLOOD,
    title: 'floods with empty logs and labels, which count as no output',
    engines: ALL,
    options: { limits: { executionTimeoutSec: 20 } },
    script: String.raw`
while True:
    emit_log("", "")
    emit_intermediate("", None)
`,
    expected: { status: 'output-limit', data: null },
  },
]
