import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { RunEvent } from '../../../src/executor/index.ts'
import { createSandglass } from '../../../src/sandglass.ts'
import { leastOf } from '../../../src/testing/conformance/least-of.ts'
import { defineTool, type JsonSchemaObject, type ToolContext } from '../../../src/tools/index.ts'
import type { OnEngine } from './on-engine.ts'
import { add } from './sample-tools.ts'

const MiB = 1024 * 1024

/** Tests of host tools, whose calls and answers pass the engine's channel. */
export function hostToolTests(at: OnEngine): void {
  const { engine, dataOf } = at

  test('OR-05: a script calls tools with zod schemas; defaults, checks and errors follow the schema', async () => {
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

  test('OR-05: every tool of data/mistakes/tools.json can be called, and its answer matches its output schema', async () => {
    const set = JSON.parse(readFileSync(new URL('../../data/mistakes/tools.json', import.meta.url), 'utf8')) as {
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
    const timeOfAll = async (): Promise<number> => {
      const [got, ms] = (await dataOf(script, [slow])) as [number[], number]
      expect(got).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
      expect(ms).toBeGreaterThan(190)
      return ms
    }
    expect(await leastOf(3, 600, timeOfAll)).toBeLessThan(600)
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
    const result = await at.sg.run('hang()', {
      tools: [hang],
      limits: { executionTimeoutSec: 0.5, maxToolWaitSec: 0.2 },
      onEvent: (event) => void events.push(event),
    })
    const count = events.length
    late.resolve('late')
    const calls = result.toolCalls.map(({ name, state, ok, error }) => [name, state, ok, error?.code])
    expect([result.status, signals.map(({ aborted }) => aborted), calls]).toEqual([
      'timed-out',
      [true],
      [['hang', 'unanswered', false, 'cancelled']],
    ])
    expect(result.warnings.map(({ code }) => code)).toContain('tool_calls_unanswered')
    expect((await at.sg.run('emit_result(2)')).finalData).toBe(2)
    expect(events.length).toBe(count)
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
    const waitedSec = await leastOf(3, 2, async () => {
      const { finalData } = await small.run<[string, string, number]>(script, { tools: [nested] })
      expect(finalData?.slice(0, 2)).toEqual(['tool_failed', expect.stringMatching(/no sandbox/)])
      expect(finalData?.[2]).toBeGreaterThan(0.45)
      return finalData?.[2] ?? Number.NaN
    })
    expect(waitedSec).toBeLessThan(2)
    expect((await small.run('emit_result(2)')).finalData).toBe(2)
  }, 60_000)

  test('calls are events of stream() and listed in the result, without secrets', async () => {
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
    for await (const event of at.sg.stream(script, { tools: [look], secrets: { TOKEN: secret } })) events.push(event)
    expect(JSON.stringify(events)).not.toContain(secret)
    const error = { code: 'tool_failed', message: 'no entry for [redacted:TOKEN]' }
    const calls = events.filter(({ type }) => type === 'tool_call' || type === 'tool_result')
    const executionId = events[0]?.executionId
    const ms: unknown = expect.any(Number)
    const of = { executionId, name: 'look' }
    expect(calls).toEqual([
      { type: 'tool_call', callId: '1', ...of, effect: 'write', args: { key: '[redacted:TOKEN]' }, line: 3 },
      { type: 'tool_result', callId: '1', ...of, ok: true, ms, error: null, resultJson: '"[redacted:TOKEN]"' },
      { type: 'tool_call', callId: '2', ...of, effect: 'write', args: { key: 'bad' }, line: 5 },
      { type: 'tool_result', callId: '2', ...of, ok: false, ms, error, resultJson: null },
    ])
    const last = events.at(-1)
    const result = last?.type === 'result' ? last.result : undefined
    expect([result?.finalData, result?.toolCalls]).toEqual([
      error.message,
      [
        {
          name: 'look',
          effect: 'write',
          args: { key: '[redacted:TOKEN]' },
          state: 'answered',
          ok: true,
          ms,
          error: null,
        },
        { name: 'look', effect: 'write', args: { key: 'bad' }, state: 'failed', ok: false, ms, error },
      ],
    ])
  })

  test('arguments and answers of 4 MiB of JSON arrive complete; larger ones are a ToolError', async () => {
    const echo = defineTool({
      name: 'echo',
      description: '',
      input: z.object({ text: z.string(), more: z.array(z.unknown()).optional() }),
      execute: ({ text }) => text,
    })
    const large = defineTool({
      name: 'large',
      description: '',
      input: z.object({}),
      execute: () => 'x'.repeat(17 * MiB),
    })
    const script = `
text = "x" * (4 * 1024 * 1024 - len('{"text":""}'))
commas = "," * (1024 * 1024)
got = [echo(text) == text, echo(commas) == commas, echo("", more=[0] * 130_000) == ""]
for call in (lambda: echo(text + "x"), lambda: echo("", more=[{}] * 70_000), large):
    try:
        call()
    except ToolError as error:
        got.append([error.code, str(error).split(": ")[1][:40]])
emit_result(got)`
    const codes = [
      ['invalid_arguments', 'the arguments have 4194305 bytes; at mos'],
      ['invalid_arguments', 'the arguments hold too many values; send'],
      ['result_too_large', 'the answer has more than 16777216 bytes,'],
    ]
    expect(await dataOf(script, [echo, large])).toEqual([true, true, true, ...codes])
  }, 60_000)
}
