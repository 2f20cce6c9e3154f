import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createSandglass } from '../../../src/sandglass.ts'
import { definePythonTool, defineTool, type PythonTool, ToolRegistry } from '../../../src/tools/index.ts'
import { type OnEngine, onLocal } from './on-engine.ts'

const price = defineTool({
  name: 'price',
  description: 'Price of an article.',
  input: z.object({ sku: z.string() }),
  output: z.number(),
  effect: 'read',
  execute: ({ sku }) => sku.length,
})
const median = definePythonTool({
  source: `
import statistics
SEEN = []

def median(values, *, digits=2):
    """Median of numbers, rounded."""
    SEEN.append(len(values))
    return {"median": round(statistics.median(values), digits), "seen": SEEN}
`,
  parameters: [{ name: 'values', type: 'list[float]', description: 'At least one.' }],
})
const pause = definePythonTool({
  source: `
import asyncio
async def pause(ms, value):
    "Gives the value later."
    await asyncio.sleep(ms / 1000)
    return value
`,
})
const signed = definePythonTool({
  source:
    'import os\ndef signed(text):\n    "Signs a text."\n    return text + "/" + str(len(os.environ["SIGN_KEY"]))\n',
  secrets: ['SIGN_KEY'],
  sandbox: 'data',
})

await onLocal(toolsOfPython, { maxOverflow: 0 })

/** Tests of tools of Python source, on every engine. */
function toolsOfPython(at: OnEngine): void {
  const { engine, dataOf } = at
  let directory: string
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'sandglass-'))
    chmodSync(directory, 0o755)
  })
  afterAll(() => rmSync(directory, { recursive: true }))

  test('HA-02, HA-04: Python tools, async ones too, are called together with tools of the host, and can receive them as arguments', async () => {
    const total = definePythonTool({
      source: 'def total(skus, price_of):\n    "Sum of prices."\n    return sum(price_of(sku) for sku in skus)\n',
    })
    const script = `
import asyncio, time
async def main():
    began = time.perf_counter()
    got = await asyncio.gather(pause(200, "a"), pause(200, "b"), pause(200, "c"))
    return time.perf_counter() - began, got
least, both = min(asyncio.run(main()) for _ in range(3))
emit_result([median([1, 2, 10])["median"], price("abc"), total(["a", "bc"], price), pause(1, "x"), both,
             least < 0.55])`
    const result = await at.sg.run(script, { tools: [median, price, total, pause] })
    expect([result.error, result.finalData]).toEqual([null, [2, 3, 3, 'x', ['a', 'b', 'c'], true]])
    expect(result.toolCalls.map(({ name, effect, ok }) => [name, effect, ok])).toEqual([
      ['price', 'read', true],
      ['price', 'read', true],
      ['price', 'read', true],
    ])
  })

  test('a Python file is a tool, and the state of its module does not reach the next script', async () => {
    const file = join(directory, 'tally.py')
    writeFileSync(file, 'N = 0\n\ndef tally():\n    """Counts calls."""\n    global N\n    N += 1\n    return N\n')
    const tools = [definePythonTool({ file })]
    const script = 'emit_result([tally(), tally(), "N" in globals()])'
    const runs = [await at.sg.run(script, { tools }), await at.sg.run(script, { tools })]
    expect(runs.map(({ finalData }) => finalData)).toEqual([
      [1, 2, false],
      [1, 2, false],
    ])
    const [first, second] = runs
    expect([first?.sandbox.id === second?.sandbox.id, (second?.sandbox.use ?? 0) > 1]).toEqual([true, true])
    expect(await dataOf('emit_result("tally" in globals())', [])).toBe(false)
  })

  test('a model sees them in stubs and describe_tool, and its mistakes are found before anything runs', async () => {
    const tool = at.sg.asTool({ tools: [median, price] })
    const stub =
      'def median(values: list[float], *, digits=2):\n    """\n    Median of numbers, rounded.\n\n    Args:\n' +
      '        values: At least one.\n    """'
    expect(tool.description).toContain(`\`\`\`python\n${stub}\n\ndef price(sku: str) -> float:`)
    expect(await tool.execute({ script: 'emit_result([describe_tool("median"), median([3])["median"]])' })).toEqual({
      ok: true,
      status: 'completed',
      result: [stub, 3],
    })
    expect(await tool.execute({ script: 'r = median\nmedian([1], 3)\nmedian(value=[1])\nemit_result(r + 1)' })).toEqual(
      {
        ok: false,
        status: 'rejected',
        mistakes: [
          'line 1: r is the function median itself: it is never called (not_called) Call it: r = median(values=...).',
          'line 2: median() takes at most 1 argument by position, not 2 (too_many_arguments) Write median(values, digits=2).',
          "line 3: median() has no parameter 'value' (unknown_argument) median() takes values, digits. Write values=[1] in place of value=[1].",
        ],
      },
    )
  })

  test('sg.check knows them, and finds a missing or superfluous await', async () => {
    const script = `
import asyncio
async def main():
    first = pause(1, 2)[0]
    return median([1])["median"] + await pause(1, 2)
emit_result(asyncio.run(main()))
medain([1])`
    const { violations } = await at.sg.check(script, { tools: [median, pause] })
    expect(violations.map(({ code, line, hint }) => [code, line, hint])).toEqual([
      ['not_awaited', 4, 'Write (await pause(1, 2)) with the parentheses, then take the field.'],
      ['unknown_name', 7, 'Did you mean median(values, digits=2)?'],
    ])
    expect((await at.sg.check('emit_result(median([1]))', { tools: [median], policy: 'strict' })).ok).toBe(true)
  })

  test('one whose source is broken fails the run with its name and line, and the next run works', async () => {
    const broken = definePythonTool({ source: 'def broken():\n    "Broken."\n\nimport nowhere_to_be_found\n' })
    const result = await at.sg.run('emit_log("ran")', { tools: [median, broken] })
    expect([result.status, result.errorKind, result.logs, result.error]).toEqual([
      'failed',
      'error',
      [],
      "the Python tool broken could not be loaded: ModuleNotFoundError: No module named 'nowhere_to_be_found' (<tool broken>, line 4)",
    ])
    expect(await dataOf('emit_result(median([1])["seen"])', [median])).toEqual([1])
  })

  test('one that never finishes loading ends at the deadline of the run', async () => {
    const slow = definePythonTool({ source: 'def slow(): "Slow."\nwhile True: pass\n' })
    const result = await at.sg.run('emit_log("ran")', { tools: [slow], limits: { executionTimeoutSec: 0.5 } })
    expect([result.status, result.logs]).toEqual(['timed-out', []])
  })

  test('an error that a call raises is one that the script can catch; uncaught, its traceback has the lines of both', async () => {
    const script = 'try:\n    median([])\nexcept Exception as error:\n    emit_result(type(error).__name__)'
    expect(await dataOf(script, [median])).toBe('StatisticsError')
    const { error, traceback } = await at.sg.run('x = 1\nmedian([])', { tools: [median] })
    expect(error).toBe('statistics.StatisticsError: no median for empty data')
    expect(traceback).toMatch(
      /File "<script>", line 2, in <module>\n {4}median\(\[\]\)\n[^]*File "<tool median>", line 8, in median\n/,
    )
  })

  test("OR-11: a run with the tools of a registry's sandbox requires their secrets, and its scripts can read them", async () => {
    const registry = new ToolRegistry().register(price, { sandbox: 'data' }).register(signed).register(median)
    const tools = registry.forSandbox('data')
    const script = 'import os\nemit_result([signed("a"), price("abc"), os.environ["SIGN_KEY"], "median" in globals()])'
    const without = await at.sg.run(script, { tools })
    expect([without.status, without.errorKind, without.error, without.ending.cause]).toEqual([
      'failed',
      'error',
      'required secrets are missing: SIGN_KEY',
      'not-started',
    ])
    const secrets = { SIGN_KEY: 'key-of-ten-and-more' }
    expect(await dataOf(script, tools, { secrets })).toEqual(['a/19', 3, '[redacted:SIGN_KEY]', false])
    expect(await dataOf('emit_result([signed("b"), median([1])["median"]])', registry, { secrets })).toEqual([
      'b/19',
      1,
    ])
  })

  test('an input, or a function of the tools directory, of the same name is refused and both are named', async () => {
    await expect(at.sg.run('x = 1', { tools: [median], inputs: { median: 1 } })).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'inputs: "median" is the name of a Python tool; rename the input',
    })
    writeFileSync(join(directory, 'median.py'), 'def median(): pass\n')
    await using own = await createSandglass({ engine, poolSize: 1, toolsDir: directory })
    const { error } = await own.run('emit_log("ran")', { tools: [median] })
    expect(error).toBe(
      'median is both a Python tool of this run and a function of the tools directory; rename one of them',
    )
  }, 60_000)

  test('a source that is too large is refused before a sandbox is sent anything', async () => {
    const large: PythonTool = { ...median, source: `${median.source}#${'x'.repeat(1 << 20)}` }
    await expect(at.sg.run('x = 1', { tools: [large] })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(
        /^tools: the source of the Python tool "median" has \d+ bytes; at most 1048576 are allowed$/,
      ) as string,
    })
  })
}
