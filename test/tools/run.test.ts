import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, type Mock, test, vi } from 'vitest'
import { z } from 'zod'
import type { RunEvent } from '../../src/executor/index.ts'
import { createSandglass, type Sandglass } from '../../src/sandglass.ts'
import { defineTool, type JsonSchemaObject, type Tool, type ToolContext } from '../../src/tools/index.ts'
import { requireDockerEngine } from '../docker-engine.ts'
import { requireLocalEngine } from '../local-engine.ts'
import { settledMemory, watchGrowth } from '../support/memory.ts'

const MiB = 1024 * 1024

const local = await requireLocalEngine()
const docker = await requireDockerEngine()

const add = defineTool({
  name: 'add',
  description: 'Adds two numbers.',
  input: z.object({ a: z.number(), b: z.number().default(1) }),
  output: z.number(),
  effect: 'read',
  execute: ({ a, b }) => a + b,
})

/** A tool that tells how often it was executed. */
function counter(name = 'count'): { readonly tool: Tool; readonly execute: Mock<(input: unknown) => unknown> } {
  const execute = vi.fn<(input: unknown) => unknown>((input) => input)
  return { execute, tool: defineTool({ name, description: '', input: z.object({ n: z.int().optional() }), execute }) }
}

describe.skipIf(local.skip)('on the local engine', () => {
  toolsOfTheHost('local')
})
describe.skipIf(docker.skip)('on the docker engine', () => {
  toolsOfTheHost('docker')
})

/** What host tools and the checker do, whatever the engine. */
function toolsOfTheHost(engine: 'local' | 'docker'): void {
  let sg: Sandglass
  beforeAll(async () => {
    sg = await createSandglass({ engine, poolSize: 1, maxOverflow: 1 })
  }, 60_000)
  afterAll(() => sg.close())

  /** What a script hands to emit_result. */
  async function dataOf(script: string, tools: readonly Tool[], timeoutSec = 60): Promise<unknown> {
    const { error, finalData } = await sg.run(script, { tools, limits: { executionTimeoutSec: timeoutSec } })
    expect(error).toBe(null)
    return finalData
  }

  test('OR-05: a script calls tools with zod schemas; defaults, checks and mistakes are as the schema says', async () => {
    const script = `
got = [add(1, 2), add(a=4), add(b=1.5, a=1)]
try:
    add("one")
except ToolError as error:
    got.append([error.code, str(error)])
emit_result(got)`
    expect(await dataOf(script, [add])).toEqual([
      3,
      5,
      2.5,
      ['invalid_arguments', 'add: a: Invalid input: expected number, received string, got "one"'],
    ])
  })

  test('OR-05: every tool of the set of the mistakes can be called, and answers as its output schema says', async () => {
    const set = JSON.parse(readFileSync(new URL('../mistakes/tools.json', import.meta.url), 'utf8')) as {
      name: string
      description: string
      input: JsonSchemaObject
      output: JsonSchemaObject
    }[]
    const order = {
      id: 'A-1',
      customer_id: 'c',
      sku: 's',
      quantity: 1,
      total: 2.5,
      status: 'open',
      created: '2026-01-01',
    }
    const tools = set.map((given) =>
      defineTool({ ...given, output: undefined, execute: (input) => ({ input, order }) }),
    )
    const script = `
r = search_orders("x", status="late")
emit_result([r.input, r["order"].total, sorted(name for name in ${JSON.stringify(set.map(({ name }) => name))} if callable(globals()[name]))])`
    expect(await dataOf(script, tools)).toEqual([
      { query: 'x', status: 'late', limit: 10 },
      2.5,
      set.map(({ name }) => name).toSorted(),
    ])
  })

  test.each([
    [
      'threads',
      `from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(10) as pool:
    began = time.perf_counter()
    got = list(pool.map(slow, range(10)))`,
    ],
    [
      'asyncio.gather',
      `import asyncio
async def main():
    return await asyncio.gather(*[slow(n) for n in range(10)])
began = time.perf_counter()
got = asyncio.run(main())`,
    ],
  ])('ten tools of 200 ms end within 600 ms by %s', async (_how, body) => {
    const execute = async ({ n }: { n: number }): Promise<number> => {
      await sleep(200)
      return n
    }
    const slow = defineTool({ name: 'slow', description: '', input: z.object({ n: z.int() }), execute })
    const script = `import time\n${body}\nemit_result([got, (time.perf_counter() - began) * 1000])`
    const [got, ms] = (await dataOf(script, [slow])) as [number[], number]
    expect(got).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(ms).toBeGreaterThan(190)
    expect(ms).toBeLessThan(600)
  })

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

  test('forged frames: names and ids that prove nothing execute nothing, a replayed id once, another run never', async () => {
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
    const result = await sg.run(script, { tools: [tool], executionId: 'mine', limits: { executionTimeoutSec: 20 } })
    expect([result.error, result.finalData]).toEqual([null, { n: 1 }])
    // The harness puts the run's own id into each frame, so that the third forged one is of this run too.
    const inputs = execute.mock.calls.map(([input]) => input)
    expect(inputs.filter((input) => JSON.stringify(input) === '{"n":7}')).toEqual([{ n: 7 }])
    expect(inputs.length).toBeLessThanOrEqual(3)
    expect(result.toolCalls.filter(({ name }) => name === 'secret_tool').every(({ ok }) => !ok)).toBe(true)
  })

  test('a name of the tool of another run under way is unknown', async () => {
    const [mine, others] = [counter('mine'), counter('others')]
    const [a, b] = await Promise.all([
      sg.run('emit_result(["others" in globals(), mine(n=1)])', { tools: [mine.tool] }),
      sg.run('emit_result(["mine" in globals(), others(n=2)])', { tools: [others.tool] }),
    ])
    expect([a.finalData, b.finalData]).toEqual([
      [false, { n: 1 }],
      [false, { n: 2 }],
    ])
    expect([mine.execute.mock.calls.length, others.execute.mock.calls.length]).toEqual([1, 1])
  })

  test("a tool that never answers: the run's timeout ends it, its signal fires, and nothing is answered after the end", async () => {
    const late = Promise.withResolvers<string>()
    const signals: AbortSignal[] = []
    const execute = (_: unknown, { signal }: ToolContext): Promise<string> => {
      signals.push(signal)
      return late.promise
    }
    const hang = defineTool({ name: 'hang', description: '', input: z.object({}), execute })
    const events: RunEvent[] = []
    const result = await sg.run('hang()', {
      tools: [hang],
      limits: { executionTimeoutSec: 0.5 },
      onEvent: (event) => void events.push(event),
    })
    const told = events.length
    late.resolve('late')
    expect([result.status, signals.map(({ aborted }) => aborted), result.toolCalls]).toEqual(['timed-out', [true], []])
    expect(result.warnings.map(({ code }) => code)).toContain('tool_calls_unanswered')
    expect((await sg.run('emit_result(2)')).finalData).toBe(2)
    expect(events.length).toBe(told)
  })

  test('RPC-015: a tool that runs a script where no sandbox is free ends as a ToolError at checkoutTimeoutMs', async () => {
    await using small = await createSandglass({ engine, poolSize: 1, maxOverflow: 0 })
    const nested = defineTool({
      name: 'nested',
      description: '',
      input: z.object({}),
      execute: async () => (await small.run('emit_result(1)', { checkoutTimeoutMs: 500 })).finalData,
    })
    const script = `
import time
began = time.perf_counter()
try:
    nested()
except ToolError as error:
    emit_result([error.code, str(error), time.perf_counter() - began])`
    const { finalData } = await small.run<[string, string, number]>(script, { tools: [nested] })
    expect(finalData?.slice(0, 2)).toEqual(['tool_failed', expect.stringMatching(/no sandbox/)])
    expect(finalData?.[2]).toBeGreaterThan(0.45)
    expect(finalData?.[2]).toBeLessThan(2)
    expect((await small.run('emit_result(2)')).finalData).toBe(2)
  }, 60_000)

  test('calls are told in stream() and listed in the result, without secrets', async () => {
    const secret = 'hunter2-secret-value'
    const execute = ({ key }: { key: string }): string => {
      if (key === 'bad') throw new Error(`no entry for ${secret}`)
      return key
    }
    const look = defineTool({ name: 'look', description: '', input: z.object({ key: z.string() }), execute })
    const script = `
import os
look(os.environ["TOKEN"])
try:
    look("bad")
except ToolError as error:
    emit_result(str(error))`
    const events: RunEvent[] = []
    for await (const event of sg.stream(script, { tools: [look], secrets: { TOKEN: secret } })) events.push(event)
    expect(JSON.stringify(events)).not.toContain(secret)
    const error = { code: 'tool_failed', message: 'no entry for [redacted:TOKEN]' }
    const calls = events.filter(({ type }) => type === 'tool_call' || type === 'tool_result')
    const executionId = events[0]?.executionId
    const ms: unknown = expect.any(Number)
    expect(calls).toEqual([
      { type: 'tool_call', executionId, callId: '1', name: 'look', args: { key: '[redacted:TOKEN]' } },
      { type: 'tool_result', executionId, callId: '1', name: 'look', ok: true, ms, error: null },
      { type: 'tool_call', executionId, callId: '2', name: 'look', args: { key: 'bad' } },
      { type: 'tool_result', executionId, callId: '2', name: 'look', ok: false, ms, error },
    ])
    const last = events.at(-1)
    const result = last?.type === 'result' ? last.result : undefined
    expect([result?.finalData, result?.toolCalls]).toEqual([
      error.message,
      [
        { name: 'look', args: { key: '[redacted:TOKEN]' }, ok: true, ms, error: null },
        { name: 'look', args: { key: 'bad' }, ok: false, ms, error },
      ],
    ])
  })

  test('ten thousand calls one after the other: the memory of host and sandbox stays flat', async () => {
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
    const before = settledMemory()
    const [last, grewKiB] = (await dataOf(script(9990), tools)) as [number, number]
    expect(last).toBe(2)
    expect(grewKiB).toBeLessThan(2048)
    expect((settledMemory() - before) / MiB).toBeLessThan(32)
  }, 120_000)

  test('calls beyond maxCalls, without end: refused, and the host keeps nothing of them', async () => {
    const { tool, execute } = counter()
    const script = `
codes = set()
for n in range(5000):
    try:
        count(n=n)
    except ToolError as error:
        codes.add(error.code)
emit_result(list(codes))`
    const { finalData, toolCalls, warnings } = await sg.run(script, {
      tools: [tool],
      toolLimits: { maxCalls: 10 },
      limits: { executionTimeoutSec: 60 },
    })
    expect([finalData, execute.mock.calls.length, toolCalls.length]).toEqual([['call_limit'], 10, 1000])
    expect(warnings.map(({ code }) => code)).toEqual(['tool_calls_left_out'])
  }, 120_000)

  test('replays are ignored, and the host does not keep what they carried', async () => {
    const { tool } = counter()
    const script = `
import json, os, time
frame = (json.dumps({"type": "tool_call", "execution_id": "flood", "id": "r", "name": "count", "args": {"n": 1, "x": "y" * 60000}}) + "\\n").encode()
until = time.monotonic() + 3
sent = 0
while time.monotonic() < until:
    sent += os.write(3, frame)
emit_result(sent)`
    const grown = watchGrowth()
    const result = await sg.run(script, { tools: [tool], executionId: 'flood', limits: { executionTimeoutSec: 20 } })
    expect(['completed', 'output-limit']).toContain(result.status)
    // All that was carried would be kept, or next to nothing of it; what lies between is garbage that waits.
    const carriedMiB = result.status === 'completed' ? Number(result.finalData) / MiB : 1024
    expect(carriedMiB).toBeGreaterThan(32)
    expect(grown()).toBeLessThan(64 + carriedMiB / 4)
  }, 60_000)

  test('arguments and answers of nearly 16 MiB come whole; larger ones are a ToolError', async () => {
    const echo = defineTool({
      name: 'echo',
      description: '',
      input: z.object({ text: z.string() }),
      execute: ({ text }) => text,
    })
    const large = defineTool({
      name: 'large',
      description: '',
      input: z.object({}),
      execute: () => 'x'.repeat(17 * MiB),
    })
    const script = `
text = "x" * (16 * 1024 * 1024 - 1000)
got = [echo(text) == text]
for call in (lambda: echo("x" * (16 * 1024 * 1024)), large):
    try:
        call()
    except ToolError as error:
        got.append(error.code)
emit_result(got)`
    expect(await dataOf(script, [echo, large])).toEqual([true, 'invalid_arguments', 'result_too_large'])
  }, 60_000)

  test('OR-05: a script with mistakes is rejected before it runs, and takes no sandbox of the pool', async () => {
    await using own = await createSandglass({ engine, poolSize: 1, maxOverflow: 0 })
    const { tool, execute } = counter()
    const { hits, misses, waits } = own.stats()
    const script = 'count(n=1)\nemit_resutl(1)\n'
    const result = await own.run(script, { tools: [tool], policy: 'standard' })
    expect([result.status, result.errorKind, result.success, result.ending.cause]).toEqual([
      'rejected',
      'validation',
      false,
      'not-started',
    ])
    expect(result.violations.map(({ code, line, column }) => [code, line, column])).toEqual([['unknown_name', 2, 0]])
    expect(result.error).toMatch(/^the script was rejected before it ran: line 2: /)
    expect(await own.check(script, { tools: [tool] })).toEqual({ ok: false, violations: result.violations })
    expect(await own.check('emit_result(count(n=1))', { tools: [tool] })).toEqual({ ok: true, violations: [] })
    expect(execute).not.toHaveBeenCalled()
    const after = own.stats()
    expect([after.hits, after.misses, after.waits]).toEqual([hits, misses, waits])
  }, 60_000)

  test('stream() of a rejected script tells its result and nothing else', async () => {
    const events: RunEvent[] = []
    for await (const event of sg.stream('emit_result(nope)', { policy: 'standard' })) events.push(event)
    expect(events.map(({ type }) => type)).toEqual(['result'])
  }, 60_000)

  test('strict refuses modules beside its own, unless allowModules names them; a right script runs', async () => {
    const script = 'import socket\nemit_result(socket.AF_INET)'
    const { ok, violations } = await sg.check(script, { policy: 'strict' })
    expect([ok, violations.map(({ line }) => line)]).toEqual([false, [1]])
    expect(await sg.check('import json\nemit_result(json.dumps(1))', { policy: 'strict' })).toEqual({
      ok: true,
      violations: [],
    })
    const allowed = await sg.run(script, { policy: 'strict', allowModules: ['socket'] })
    expect([allowed.status, allowed.finalData]).toEqual(['completed', 2])
  }, 60_000)

  test('checks one after the other are made by one sandbox', async () => {
    const served = new Set<string>()
    for (let n = 0; n < 5; n += 1) served.add((await sg.run('nope', { policy: 'standard' })).sandbox.id)
    expect(served.size).toBe(1)
    const { sandbox } = await sg.run('emit_result(1)', { policy: 'standard' })
    expect(served.has(sandbox.id)).toBe(false)
  }, 60_000)
}
