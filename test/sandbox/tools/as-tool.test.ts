import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { generateText, stepCountIs } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool } from '../../../src/tools/index.ts'
import { type OnEngine, onLocal } from './on-engine.ts'

const stock = defineTool({
  name: 'get_stock',
  description: 'How many of an article are there.',
  input: z.object({ sku: z.string() }),
  output: z.object({ sku: z.string(), left: z.int() }),
  effect: 'read',
  execute: ({ sku }) => ({ sku, left: sku.length }),
})
const manyTools = Array.from({ length: 40 }, (_, n) =>
  defineTool({
    name: `tool_${n}`,
    description: `Does thing ${n}. ${'It is described at length. '.repeat(20)}`,
    input: z.object({ value: z.string() }),
    execute: ({ value }) => value,
  }),
)

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
}

describe('run_python for an agent', async () => {
  await onLocal(runPythonFor)
})

/** Behaviour of the tool on every engine. */
function runPythonFor(at: OnEngine): void {
  test('the AI SDK gives a model its description and schema, runs its script, and gives it the answer', async () => {
    const calls: unknown[] = []
    const model = new MockLanguageModelV4({
      doGenerate: (options) => {
        calls.push(options)
        if (calls.length > 1) {
          const text = { type: 'text' as const, text: 'There are 3.' }
          return Promise.resolve({
            content: [text],
            finishReason: { unified: 'stop', raw: 'stop' },
            usage,
            warnings: [],
          })
        }
        const input = JSON.stringify({ script: 'r = get_stock("A-1")\nemit_result({"left": r.left})' })
        const call = { type: 'tool-call' as const, toolCallId: 'call-1', toolName: 'run_python', input }
        return Promise.resolve({
          content: [call],
          finishReason: { unified: 'tool-calls', raw: 'tool-calls' },
          usage,
          warnings: [],
        })
      },
    })
    const tool = at.sg.asTool({ tools: [stock] })
    const { text, steps } = await generateText({
      model,
      prompt: 'How many A-1 are left?',
      tools: { [tool.name]: tool },
      stopWhen: stepCountIs(3),
    })
    expect(text).toBe('There are 3.')
    expect(steps[0]?.toolResults).toMatchObject([
      { toolName: 'run_python', output: { ok: true, status: 'completed', result: { left: 3 } } },
    ])
    const [first] = model.doGenerateCalls
    expect(first?.tools).toMatchObject([
      {
        type: 'function',
        name: 'run_python',
        description: tool.description,
        inputSchema: { type: 'object', properties: { script: { type: 'string' } }, required: ['script'] },
      },
    ])
    expect(tool.description).toContain('def get_stock(sku: str) -> ')
  })

  test('an MCP server registers it, and a client lists and calls it', async () => {
    const { mcp, description } = at.sg.asTool({ tools: [stock] })
    const server = new McpServer({ name: 'test', version: '1.0.0' })
    server.registerTool(mcp.name, mcp.config, (input, extra) => mcp.handler(input, extra))
    const client = new Client({ name: 'test', version: '1.0.0' })
    const [here, there] = InMemoryTransport.createLinkedPair()
    await Promise.all([server.connect(there), client.connect(here)])
    const { tools } = await client.listTools()
    expect(tools).toMatchObject([
      { name: 'run_python', title: 'Run Python', description, inputSchema: { required: ['script'] } },
    ])
    const call = async (script: string): Promise<unknown[]> => {
      const { content, isError } = await client.callTool({ name: 'run_python', arguments: { script } })
      const [part] = content as { type: string; text: string }[]
      const answer: unknown = JSON.parse(part?.text ?? '')
      return [isError, answer]
    }
    expect(await call('emit_result(get_stock("A-10"))')).toEqual([
      false,
      { ok: true, status: 'completed', result: { sku: 'A-10', left: 4 } },
    ])
    const [isError, answer] = await call('emit_result(get_stok("A-1"))')
    expect([isError, answer]).toEqual([
      true,
      { ok: false, status: 'rejected', mistakes: [expect.stringMatching(/^line 1: .*\(unknown_name\).*get_stock/)] },
    ])
    await client.close()
    await server.close()
  })

  test('a description of many tools is cut to its budget, names all of them first, and describe_tool gives the rest', async () => {
    const tool = at.sg.asTool({ tools: manyTools, maxStubChars: 3000 })
    const whole = at.sg.asTool({ tools: manyTools, maxStubChars: 1e6 })
    const stubs = /```python\n([^]*)\n```/.exec(tool.description)?.[1] ?? ''
    expect(stubs.length).toBeLessThanOrEqual(3000)
    expect(whole.description.length).toBeGreaterThan(20_000)
    const places = manyTools.map(({ name }) => stubs.search(new RegExp(`\\b${name}\\b`)))
    expect(places.filter((place) => place < 0)).toEqual([])
    expect(stubs).toContain('describe_tool')
    expect(await tool.execute({ script: 'emit_result(describe_tool("tool_39").split(".")[0])' })).toEqual({
      ok: true,
      status: 'completed',
      result: 'def tool_39(value: str) -> Any:\n    """\n    Does thing 39',
    })
  })

  test('instructions and name can be set', () => {
    const { name, description, mcp } = at.sg.asTool({ name: 'python', instructions: 'Answer in German.' })
    expect([name, mcp.name]).toEqual(['python', 'python'])
    expect(description).toMatch(/Answer in German\.$/)
    expect(() => at.sg.asTool({ nmae: 'x' } as never)).toThrow(/unknown option "nmae".*Did you mean "name"/)
  })

  test('an error, its traceback and the printed output are returned as text', async () => {
    const tool = at.sg.asTool()
    const error: unknown = expect.stringMatching(/^ValueError: invalid literal[^]*line 2/)
    expect(await tool.execute({ script: 'print("so far")\nint("x")' })).toEqual({
      ok: false,
      status: 'failed',
      stdout: 'so far\n',
      error,
    })
    expect(await tool.execute({ script: 'emit_log("looked")\nx = 1' })).toEqual({
      ok: true,
      status: 'step-done',
      logs: ['info: looked'],
      note: 'the script ended without calling emit_result(data): there is no result',
    })
    expect(await tool.execute({ script: 'emit_result({"mean": float("nan")})' })).toEqual({
      ok: true,
      status: 'completed',
      result: { mean: null },
      note: '1 NaN value was converted to null: $.mean of the result',
    })
  })

  test('scripts are checked unless another policy is set; undefined sets none', async () => {
    const script = 'emit_result(nope)'
    expect((await at.sg.asTool({ policy: undefined } as never).execute({ script })).status).toBe('rejected')
    expect((await at.sg.asTool({ policy: 'off' }).execute({ script })).status).toBe('failed')
  })

  test('results, output and mistakes are bounded, and the text names the omissions', async () => {
    const tool = at.sg.asTool({ maxAnswerChars: 100 })
    expect(await tool.execute({ script: 'print("y" * 500)\nemit_result("x" * 500)' })).toEqual({
      ok: true,
      status: 'completed',
      result: `"${'x'.repeat(99)}… (402 more characters)`,
      stdout: `${'y'.repeat(100)}… (401 more characters)`,
    })
    const logs = await tool.execute({ script: 'for n in range(50):\n    emit_log(f"line {n}")\nemit_result(1)' })
    expect(JSON.stringify(logs.logs).length).toBeLessThan(200)
    expect(logs.logs?.at(-1)).toMatch(/left out/)
    const { mistakes } = await tool.execute({ script: Array.from({ length: 50 }, (_, n) => `nope_${n}`).join('\n') })
    expect(JSON.stringify(mistakes).length).toBeLessThan(500)
    expect(mistakes?.[0]).toMatch(/^line 1: /)
    expect(mistakes?.at(-1)).toMatch(/left out/)
  })

  test("an abort by the model's client cancels the script", async () => {
    const leave = new AbortController()
    const begun = defineTool({
      name: 'begun',
      description: 'Says that the script runs.',
      input: { type: 'object' },
      // While the script sleeps.
      execute: () => void setTimeout(() => leave.abort(), 100),
    })
    const tool = at.sg.asTool({ tools: [begun] })
    const script = 'import time\nbegun()\ntime.sleep(20)'
    const answer = await tool.execute({ script }, { abortSignal: leave.signal })
    expect(answer).toMatchObject({ ok: false, status: 'cancelled' })
  })
}
