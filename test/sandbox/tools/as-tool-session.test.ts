import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { generateText, stepCountIs } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool } from '../../../src/tools/index.ts'
import { endSessionProcess, ENDS_LATER, PROCESS_ENDED } from '../../support/end-of-session-process.ts'
import { UNCERTAIN_CALLS, uncertainTools } from '../../support/uncertain-writes.ts'
import { type OnEngine, onLocal } from './on-engine.ts'

const send = defineTool({
  name: 'send',
  description: 'Sends a text.',
  input: z.object({ text: z.string() }),
  effect: 'write',
  execute: ({ text }) => text.length,
})

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
/** Shows a picture, and another one as its value. */
const DOTS = `import base64
class Dot:
    def __init__(self, name): self.name = name
    def __repr__(self): return self.name
    def _repr_png_(self): return base64.b64decode("${PNG}")
dot = Dot("a dot")
display(dot)
Dot("a second dot")`

/** A model of the AI SDK that gives these contents, one after the other. */
function scriptedModel(...contents: readonly object[][]): MockLanguageModelV4 {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 1, text: 1, reasoning: undefined },
  }
  const finishReason = { unified: 'stop', raw: 'stop' } as const
  return new MockLanguageModelV4({
    doGenerate: contents.map((content) => ({ content: content as never, finishReason, usage, warnings: [] })),
  })
}

describe('run_python in a session', async () => {
  await onLocal(runPythonIn)
})

function runPythonIn(at: OnEngine): void {
  test('variables and files stay from script to script, and answers have the last expression', async () => {
    await using session = await at.sg.session()
    const tool = at.sg.asTool({ session, tools: [send], files: { 'a.txt': 'abc' } })
    expect(tool.description).toContain('variables, functions, imports and files in the working directory stay')
    expect(tool.description).toContain('def send(text: str)')
    expect(await tool.execute({ script: 'text = open("a.txt").read()\nopen("a.txt", "w").write("changed")' })).toEqual({
      ok: true,
      status: 'step-done',
      value: '7',
    })
    expect(await tool.execute({ script: 'print(open("a.txt").read())\nsend(text)' })).toMatchObject({
      ok: true,
      stdout: 'changed\n',
      value: '3',
    })
    expect(await tool.execute({ script: 'n = 1' })).toEqual({ ok: true, status: 'step-done' })
    const { content, isError } = await tool.mcp.handler({ script: 'text.missing' })
    expect(isError).toBe(true)
    expect(JSON.stringify(content)).toContain("'str' object has no attribute 'missing'")
    expect(await session.run('text')).toMatchObject({ value: 'abc' })
  })

  test('the first answer of a branch says what the branch lacks', async () => {
    await using session = await at.sg.session()
    await session.run(
      'import threading\nthreading.Thread(target=threading.Event().wait, name="waits", daemon=True).start()',
    )
    const [branch] = await session.branch(1)
    const tool = at.sg.asTool({ session: branch ?? session })
    const note = 'this branch began without a part of the state; not in this branch: thread waits'
    expect(await tool.execute({ script: '1' })).toEqual({ ok: true, status: 'step-done', value: '1', note })
    expect(await tool.execute({ script: '1' })).toEqual({ ok: true, status: 'step-done', value: '1' })
  })

  test('the answer after the process of the session has ended between two calls says so', async () => {
    await using workspace = await at.sg.workspace()
    await using session = await workspace.session()
    const tool = at.sg.asTool({ session })
    await tool.execute({ script: `n = 2\n${ENDS_LATER}` })
    // The answer of the process comes after its copy.
    await session.variables()
    await endSessionProcess(workspace)
    const answer = { ok: true, status: 'step-done', value: '2' }
    expect(await tool.execute({ script: 'n' })).toEqual({ ...answer, note: PROCESS_ENDED })
    expect(await tool.execute({ script: 'n' })).toEqual(answer)
  })

  test('calls that come side by side take turns', async () => {
    await using session = await at.sg.session()
    const tool = at.sg.asTool({ session })
    const scripts = ['seen = [1]', 'seen.append(2)', 'len(seen)']
    const answers = await Promise.all(scripts.map((script) => tool.execute({ script })))
    expect(answers.map(({ ok, value }) => [ok, value])).toEqual([
      [true, undefined],
      [true, undefined],
      [true, '2'],
    ])
  })

  test('a call that is aborted while it waits for its turn settles at once, and does not run', async () => {
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const wait = defineTool({ name: 'wait', description: 'Waits.', input: z.object({}), execute: () => gate })
    await using session = await at.sg.session({ tools: [wait] })
    const tool = at.sg.asTool({ session })
    const first = tool.execute({ script: 'n = [1]\nwait()' })
    const leave = new AbortController()
    const aborted = tool.execute({ script: 'n.append(2)' }, { abortSignal: leave.signal })
    const third = tool.execute({ script: 'n.append(3)\nn' })
    leave.abort()
    expect(await aborted).toEqual({ ok: false, status: 'cancelled', error: 'the run was cancelled before it started' })
    open()
    expect([(await first).status, (await third).value]).toEqual(['step-done', '[1, 3]'])
  })

  test('the tools of the session are those of its scripts, and a reviewer sees each script', async () => {
    await using session = await at.sg.session({ tools: [send] })
    const seen: string[] = []
    const tool = at.sg.asTool({
      session,
      review: ({ script, tools }) => {
        seen.push(`${script}: ${tools.map(({ name }) => name).join(' ')}`)
        return seen.length === 1 ? { decision: 'accept' } : { decision: 'reject', text: 'not that' }
      },
    })
    expect(tool.description).toContain('def send(text: str)')
    expect(await tool.execute({ script: 'n = send("ab")' })).toEqual({ ok: true, status: 'step-done' })
    expect(await tool.execute({ script: 'n = send(n)' })).toMatchObject({ ok: false, status: 'rejected' })
    expect(seen).toEqual(['n = send("ab"): send', 'n = send(n): send'])
    expect(await session.run('n')).toMatchObject({ value: 2 })
  })

  test('a script that loses the session tells the model so, and which write tools had run', async () => {
    await using session = await at.sg.session({ checkpoints: 'off' })
    const tool = at.sg.asTool({ session, tools: [send], limits: { executionTimeoutSec: 1 } })
    const answer = await tool.execute({ script: 'send("a")\nwhile True: pass' })
    expect(answer).toMatchObject({ ok: false, status: 'timed-out', state: 'lost' })
    expect(answer.note).toMatch(
      /^the session has ended: all variables are lost, .*files stays in the workspace; .*: send\(text="a"\)$/s,
    )
    await expect(tool.execute({ script: '1' })).rejects.toMatchObject({ code: 'session_lost' })
  })

  test('pictures of cells reach an AI SDK model as images, and their text says what they are', async () => {
    await using session = await at.sg.session()
    const tool = at.sg.asTool({ session })
    const call = (script: string, toolCallId: string): object[] => [
      { type: 'tool-call', toolCallId, toolName: 'run_python', input: JSON.stringify({ script }) },
    ]
    const model = scriptedModel(call(DOTS, '1'), call('dot', '2'), [{ type: 'text', text: 'Done.' }])
    const { steps } = await generateText({ model, prompt: 'x', tools: { run_python: tool }, stopWhen: stepCountIs(3) })
    const first = {
      ok: true,
      status: 'step-done',
      value: 'a second dot',
      displays: [
        { text: 'a dot', picture: 'display-1.png' },
        { text: 'a second dot', picture: 'display-2.png' },
      ],
    }
    expect(steps[0]?.toolResults[0]?.output).toEqual(first)
    const seen = model.doGenerateCalls.map(({ prompt }) => prompt.at(-1)?.content[0])
    const image = { type: 'file', data: { type: 'data', data: PNG }, mediaType: 'image/png' }
    expect(seen.slice(1)).toMatchObject([
      {
        type: 'tool-result',
        output: {
          type: 'content',
          value: [
            { type: 'text', text: JSON.stringify(first) },
            { ...image, filename: 'display-1.png' },
            { ...image, filename: 'display-2.png' },
          ],
        },
      },
      {
        type: 'tool-result',
        output: { type: 'content', value: [{ type: 'text' }, { ...image, filename: 'display-1.png' }] },
      },
    ])
  })

  test('pictures of cells reach an MCP client as image blocks, also of a cell that fails', async () => {
    await using session = await at.sg.session()
    const { mcp } = at.sg.asTool({ session })
    const server = new McpServer({ name: 'test', version: '1.0.0' })
    server.registerTool(mcp.name, mcp.config, (input) => mcp.handler(input))
    const client = new Client({ name: 'test', version: '1.0.0' })
    const [here, there] = InMemoryTransport.createLinkedPair()
    await Promise.all([server.connect(there), client.connect(here)])
    const run = (script: string): ReturnType<Client['callTool']> =>
      client.callTool({ name: 'run_python', arguments: { script } })
    const image = { type: 'image', data: PNG, mimeType: 'image/png' }
    expect(await run(DOTS)).toMatchObject({ isError: false, content: [{ type: 'text' }, image, image] })
    expect(await run('display(dot)\n1 / 0')).toMatchObject({ isError: true, content: [{ type: 'text' }, image] })
    await client.close()
    await server.close()
  })

  test('after an exception that is rolled back, the model is told so, and which calls were done', async () => {
    await using session = await at.sg.session({ tools: [send], onError: 'rollback' })
    const tool = at.sg.asTool({ session })
    expect(tool.description).toContain('raises an exception or is ended (timeout, memory limit, crash) has its changes')
    expect(tool.description).not.toContain('variables are as the script left them')
    await tool.execute({ script: 'n = 1' })
    const answer = await tool.execute({
      script: 'n = 2\nsend("a")\nopen("a.txt", "w").write("a")\nsend("b" * 200)\n1 / 0',
    })
    expect(answer).toMatchObject({ ok: false, status: 'failed', state: 'rolled-back' })
    expect(answer.error).toMatch(/^ZeroDivisionError/)
    expect(answer.note).toMatch(
      /^your variables are as they were before this script; what it wrote to files stays, except what it appended to files that were open before it; .*not undone: send\(text="a"\), send\(text="b{50,100}…?\)$/,
    )
    expect(await tool.execute({ script: 'n, open("a.txt").read()' })).toMatchObject({ value: "(1, 'a')" })
  })

  test('after a rollback, the model is told which writes failed or were not answered, and may have had an effect', async () => {
    await using session = await at.sg.session({ tools: uncertainTools() })
    const answer = await at.sg.asTool({ session }).execute({ script: UNCERTAIN_CALLS })
    expect(answer).toMatchObject({ ok: false, status: 'crashed', state: 'rolled-back' })
    expect(answer.note).toMatch(
      /were answered, and are not undone: pay\(to="works"\); .*failed or were not answered, and may have had an effect: pay\(to="fails"\), pay\(to="hangs"\), pay\(to="waits"\)$/,
    )
  })

  test('what no cell can have is refused, and so is the session of another Sandglass', async () => {
    await using session = await at.sg.session()
    const refused = (options: object): unknown => {
      try {
        return at.sg.asTool({ session, ...options })
      } catch (error) {
        return (error as Error).message
      }
    }
    expect(refused({ policy: 'strict' })).toContain('the checker knows no variables of earlier cells')
    expect(refused({ dependencies: ['six'] })).toContain(
      'dependencies: cannot be combined with the option session; pass it to sg.session()',
    )
    expect(refused({ limits: { memoryBytes: 1 } })).toContain("limits.memoryBytes: is a limit of the session's sandbox")
    expect(refused({ session: {} })).toContain('session: was not made by this Sandglass')
    await session.close()
    expect(refused({})).toContain('the session is closed')
  })
}
