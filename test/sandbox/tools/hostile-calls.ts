import { expect, test } from 'vitest'
import { z } from 'zod'
import { leastOf } from '../../../src/testing/conformance/least-of.ts'
import { defineTool } from '../../../src/tools/index.ts'
import { heldMemory, settledMemory } from '../../support/memory.ts'
import type { OnEngine } from './on-engine.ts'
import { add, counter } from './sample-tools.ts'

const MiB = 1024 * 1024

/** Hostile calls: forged, replayed, endless. */
export function hostileCallTests(at: OnEngine): void {
  const { dataOf } = at

  test('ten thousand calls at once of a tool that the run was not given: each is a ToolError, nothing is executed', async () => {
    const { tool, execute } = counter()
    const script = `
import asyncio
bridge = count.__globals__["_collect"].__closure__
bridge = [cell.cell_contents for cell in bridge if hasattr(cell.cell_contents, "call")][0]
names = ["secret_tool", "__proto__", "constructor", "cuont"]
async def main():
    return await asyncio.gather(*[bridge.call(names[n % 4], {}) for n in range(10000)], return_exceptions=True)
got = asyncio.run(main())
emit_result([len(got), sorted({type(e).__name__ + " " + e.code for e in got})])`
    expect(await dataOf(script, [tool])).toEqual([10_000, ['ToolError unknown_tool']])
    expect(execute).not.toHaveBeenCalled()
  }, 120_000)

  test("forged frames: invalid names and ids execute nothing, a replayed id executes once, another run's never", async () => {
    const { tool, execute } = counter()
    const script = `
import json, os
def frame(**fields):
    line = (json.dumps({"type": "tool_call", "execution_id": "mine", **fields}) + "\\n").encode()
    while line:
        line = line[os.write(3, line):]
for n in range(2000):
    frame(id=str(n) + "x", name="secret_tool", args={})
frame(id="a", name="__proto__", args={})
frame(id="b", name="count", args={}, execution_id="other")
frame(id={"a": 1}, name=["count"], args={})
frame(name="count", args={})
frame(id="c", name="count", args=[])
for n in range(3):
    frame(id="real", name="count", args={"n": 7})
emit_result(count(n=1))`
    const result = await at.sg.run(script, { tools: [tool], executionId: 'mine', limits: { executionTimeoutSec: 20 } })
    expect([result.error, result.finalData]).toEqual([null, { n: 1 }])
    // The harness puts the run's own id into each frame, so that the third forged one is of this run too.
    const inputs = execute.mock.calls.map(([input]) => input)
    expect(inputs.filter((input) => JSON.stringify(input) === '{"n":7}')).toEqual([{ n: 7 }])
    expect(inputs.length).toBeLessThanOrEqual(3)
    expect(result.toolCalls.filter(({ name }) => name === 'secret_tool').every(({ ok }) => !ok)).toBe(true)
  })

  test('results and arguments with a million mistakes are refused at the first one', async () => {
    const fields = Array.from({ length: 25 }, (_, n) => [`field${n}`, z.string()] as const)
    const rows = z.array(z.object(Object.fromEntries(fields)))
    const { tool, execute } = counter()
    const take = defineTool({ name: 'take', description: '', input: z.object({ rows }), execute })
    const match = defineTool({
      name: 'match',
      description: '',
      input: { type: 'object', properties: { text: { type: 'string', pattern: '^(\\w+\\s?)*$' } } },
      execute,
    })
    const script = `
failures = []
for call in (lambda: take(rows=[{}] * 60_000), lambda: match(text="word " * 40 + "!")):
    try:
        call()
    except ToolError as error:
        failures.append(str(error))
emit_intermediate("failures", failures)
emit_result([{}] * 340_000)`
    const result = await at.sg.run(script, { tools: [tool, take, match], output: rows })
    expect([result.error, result.intermediates[0]?.data]).toEqual([
      'the result does not match `output`: result.0.field0: is missing',
      [
        'take: rows[0].field0: is missing',
        'match: the arguments: cannot be checked against the schema within 1000 ms, got a large value',
      ],
    ])
    expect(execute).not.toHaveBeenCalled()
  })

  test('a tool of another active run is unknown', async () => {
    const [mine, others] = [counter('mine'), counter('others')]
    const [a, b] = await Promise.all([
      at.sg.run('emit_result(["others" in globals(), mine(n=1)])', { tools: [mine.tool] }),
      at.sg.run('emit_result(["mine" in globals(), others(n=2)])', { tools: [others.tool] }),
    ])
    expect([a.finalData, b.finalData]).toEqual([
      [false, { n: 1 }],
      [false, { n: 2 }],
    ])
    expect([mine.execute.mock.calls.length, others.execute.mock.calls.length]).toEqual([1, 1])
  })

  test('ten thousand sequential calls: the memory of host and sandbox stays constant', async () => {
    const tools = [add]
    const script = (count: number): string => `
import resource
def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for n in range(${count / 10}):
    add(n)
before = used()
for n in range(${count - count / 10}):
    add(n)
emit_result([add(1), used() - before])`
    await dataOf(script(1000), tools)
    const held = heldMemory()
    await dataOf(script(9990), tools)
    expect((heldMemory() - held) / MiB).toBeLessThan(8)
    // After a load of the same size: V8's young generation grows with the first load and stays so.
    const grewMiB = await leastOf(2, 32, async () => {
      const before = settledMemory()
      const [last, grewKiB] = (await dataOf(script(9990), tools)) as [number, number]
      expect(last).toBe(2)
      expect(grewKiB).toBeLessThan(2048)
      return (settledMemory() - before) / MiB
    })
    expect(grewMiB).toBeLessThan(32)
  }, 120_000)

  test('endless calls beyond maxCalls: refused, and the host keeps no data of them', async () => {
    const { tool, execute } = counter()
    const script = `
codes = set()
for n in range(5000):
    try:
        count(n=n)
    except ToolError as error:
        codes.add(error.code)
emit_result(list(codes))`
    const { finalData, toolCalls, warnings } = await at.sg.run(script, {
      tools: [tool],
      toolLimits: { maxCalls: 10 },
      limits: { executionTimeoutSec: 60 },
    })
    expect([finalData, execute.mock.calls.length, toolCalls.length]).toEqual([['call_limit'], 10, 1000])
    expect(warnings.map(({ code }) => code)).toEqual(['tool_calls_left_out'])
  }, 120_000)

  test('replays are ignored, and the host does not keep their data', async () => {
    const { tool, execute } = counter()
    const before = heldMemory()
    let kept = Number.NaN
    const look = defineTool({
      name: 'look',
      description: '',
      input: z.object({}),
      // During the run, because its end releases all data.
      execute: () => {
        kept = (heldMemory() - before) / MiB
        return null
      },
    })
    const script = `
import json, os
call = {"type": "tool_call", "execution_id": "flood", "id": "r", "name": "count", "args": {"n": 1, "x": "y" * 60000}}
frame = (json.dumps(call) + "\\n").encode()
sent = 0
while sent < ${128 * MiB}:
    sent += os.write(3, frame[sent % len(frame):])
look()
emit_result(sent >= ${128 * MiB})`
    const limits = { executionTimeoutSec: 60 }
    const result = await at.sg.run(script, { tools: [tool, look], executionId: 'flood', limits })
    expect([result.status, result.finalData, execute.mock.calls.length]).toEqual(['completed', true, 1])
    expect(kept).toBeLessThan(8)
  }, 90_000)

  test('calls that a signal handler aborted, with large unread answers, do not block later output', async () => {
    const allGivenUp = Promise.withResolvers<void>()
    const large = defineTool({
      name: 'large',
      description: '',
      input: z.object({}),
      execute: async () => {
        await allGivenUp.promise
        return 'x'.repeat(8 * MiB)
      },
    })
    const script = `
import signal, time
class GivenUp(Exception): pass
def give_up(*_): raise GivenUp
signal.signal(signal.SIGUSR1, give_up)
import os, threading
for n in range(3):
    try:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        large()
    except GivenUp:
        emit_log(f"gave up {n}")
time.sleep(2.5)  # the answers are there, unread
print("x" * 400_000)  # more than the pipe holds
emit_result("done")`
    const limits = { executionTimeoutSec: 20 }
    let heard = 0
    const onLog = (): void => {
      heard += 1
      if (heard === 3) allGivenUp.resolve()
    }
    const { status, finalData, stdout, logs, error } = await at.sg.run(script, { tools: [large], limits, onLog })
    expect([error, status, finalData, stdout.length, logs.length]).toEqual([null, 'completed', 'done', 400_001, 3])
  }, 60_000)
}
