import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { generateText, stepCountIs } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { expect, test } from 'vitest'
import { onLocal } from './on-engine.ts'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const SCRIPT = `import base64, os
os.mkdir("out")
open("out/dot.png", "wb").write(base64.b64decode("${PNG}"))
open("out/fake.png", "w").write("not an image")
open("out/a b.csv", "w").write(open("in.csv").read())
emit_result(1)`
const FILES = [
  { path: 'out/a b.csv', size: 3, type: 'text/csv' },
  { path: 'out/dot.png', size: 70, type: 'image/png' },
  { path: 'out/fake.png', size: 12, type: 'image/png' },
]
const ANSWER = { ok: true, status: 'completed', result: 1, files: FILES }
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
}

await onLocal((at) => {
  test('the AI SDK shows a model the images and texts that a script leaves, and names the others', async () => {
    const script = { toolCallId: '1', toolName: 'run_python', input: JSON.stringify({ script: SCRIPT }) }
    const stop = { unified: 'stop', raw: 'stop' } as const
    const model = new MockLanguageModelV4({
      doGenerate: [
        { content: [{ type: 'tool-call', ...script }], finishReason: stop, usage, warnings: [] },
        { content: [{ type: 'text', text: 'Done.' }], finishReason: stop, usage, warnings: [] },
      ],
    })
    const given: string[] = []
    const tool = at.sg.asTool({
      files: { 'in.csv': 'x,y' },
      collect: ['out/**'],
      onFiles: (files) => {
        given.push(...files.map(({ path }) => path))
      },
    })
    expect(tool.description).toContain('Files in the working directory: "in.csv".')
    const { steps } = await generateText({ model, prompt: 'x', tools: { run_python: tool }, stopWhen: stepCountIs(2) })
    expect(steps[0]?.toolResults[0]?.output).toEqual(ANSWER)
    const content = model.doGenerateCalls[1]?.prompt.at(-1)?.content[0]
    expect(content).toMatchObject({
      type: 'tool-result',
      output: {
        type: 'content',
        value: [
          { type: 'text', text: JSON.stringify(ANSWER) },
          { type: 'text', text: '"out/a b.csv":\nx,y' },
          { type: 'file', data: { type: 'data', data: PNG }, mediaType: 'image/png', filename: 'out/dot.png' },
        ],
      },
    })
    expect(given).toEqual(FILES.map(({ path }) => path))
  }, 60_000)

  test('an MCP client gets images as such, and other files as resources', async () => {
    const { mcp } = at.sg.asTool({ files: { 'in.csv': 'x,y' }, collect: ['out/**'] })
    const server = new McpServer({ name: 'test', version: '1.0.0' })
    server.registerTool(mcp.name, mcp.config, (input) => mcp.handler(input))
    const client = new Client({ name: 'test', version: '1.0.0' })
    const [here, there] = InMemoryTransport.createLinkedPair()
    await Promise.all([server.connect(there), client.connect(here)])
    const { content } = await client.callTool({ name: 'run_python', arguments: { script: SCRIPT } })
    expect(content).toEqual([
      { type: 'text', text: JSON.stringify(ANSWER) },
      { type: 'resource', resource: { uri: 'sandbox:///out/a%20b.csv', mimeType: 'text/csv', text: 'x,y' } },
      { type: 'image', data: PNG, mimeType: 'image/png' },
      {
        type: 'resource',
        resource: { uri: 'sandbox:///out/fake.png', mimeType: 'image/png', blob: btoa('not an image') },
      },
    ])
    await client.close()
    await server.close()
  }, 60_000)

  test('what goes to the model is bounded, and a file with a secret never does', async () => {
    const tool = at.sg.asTool({
      collect: ['*'],
      maxAnswerChars: 1000,
      maxAnswerFileBytes: 5000,
      secrets: { KEY: 'very-secret-value' },
    })
    const script = `import os
open("a.txt", "w").write("a" * 4000)
open("b.txt", "w").write("b" * 2000)
open("c.txt", "w").write(os.environ["KEY"])
open("d", "w").write("d")`
    const { mcp } = tool
    const { content } = await mcp.handler({ script })
    const shown = content.flatMap((block) => (block.type === 'resource' ? [block.resource] : []))
    expect(shown.map(({ uri }) => uri)).toEqual(['sandbox:///a.txt', 'sandbox:///d'])
    expect(JSON.stringify(shown[0]).length).toBeLessThan(1200)
    expect(tool.toModelOutput({ output: await at.sg.asTool().execute({ script: 'emit_result(1)' }) })).toEqual({
      type: 'json',
      value: { ok: true, status: 'completed', result: 1 },
    })
  }, 60_000)

  test('the answer says that a picture beyond its limits is not shown, and onFiles gets it', async () => {
    const given: unknown[] = []
    const tool = at.sg.asTool({
      collect: ['*.png'],
      onFiles: (files) => {
        given.push(...files.map(({ path, size, sha256, isDisplay }) => [path, size, sha256.length, isDisplay]))
      },
    })
    const output = await tool.execute({
      script: `import base64
class Dot:
    def __init__(self, content): self.content = content
    def __repr__(self): return "a dot"
    def _repr_png_(self): return self.content
png = base64.b64decode("${PNG}")
display(Dot(png + bytes(1_500_000)))
for _ in range(11): display(Dot(png))
display(Dot(b"not an image"))
open("display-1.png", "wb").write(png)
emit_result(1)`,
    })
    const limits = 'an answer shows at most 10 pictures and files, of 1048576 bytes together'
    const told = (path: string, size: number): object => ({
      text: `a dot\n(the picture ${path}, ${size} bytes, is not shown: ${limits})`,
    })
    expect(output.displays).toEqual([
      told('display-1.png', 1_500_070),
      ...Array.from({ length: 10 }, (_, index) => ({ text: 'a dot', picture: `display-${index + 2}.png` })),
      told('display-12.png', 70),
      { text: 'a dot' },
    ])
    const { value } = tool.toModelOutput({ output })
    const names = (value as { filename?: string }[]).slice(1).map(({ filename }) => filename)
    expect(names).toEqual(Array.from({ length: 10 }, (_, index) => `display-${index + 2}.png`))
    expect(given).toEqual([
      ['display-1.png', 1_500_070, 64, true],
      ...Array.from({ length: 11 }, (_, index) => [`display-${index + 2}.png`, 70, 64, true]),
      ['display-1.png', 70, 64, undefined],
    ])
  })

  test('the model is told of displays that were left out', async () => {
    const tool = at.sg.asTool({ secrets: { KEY: 'a-secret-value' } })
    const { note } = await tool.execute({
      script: `import base64, os
display({"image/png": base64.b64encode(b"\\x89PNG" + os.environ["KEY"].encode()).decode()}, raw=True)
for n in range(150): display(n)
emit_result(1)`,
    })
    expect(note).toMatch(
      /^image\/png of display 1 held the value of a secret.*\ndisplays were left out: .* at most 100/,
    )
  })

  test('in a workspace, files are put once and stay from call to call; an error of onFiles ends a call', async () => {
    await using workspace = await at.sg.workspace()
    const given: number[] = []
    const tool = at.sg.asTool({
      workspace,
      files: { 'n.txt': '1' },
      collect: ['n.txt'],
      onFiles: ([file]) => {
        if (given.push(file?.size ?? 0) === 3) throw new Error('no room')
      },
    })
    expect(tool.description).toContain('stay from script to script')
    const script = 'open("n.txt", "a").write("2"); emit_result(open("n.txt").read())'
    expect((await tool.execute({ script })).result).toBe('12')
    expect((await tool.execute({ script })).result).toBe('122')
    await expect(tool.execute({ script })).rejects.toThrow('no room')
    expect(given).toEqual([2, 3, 4])
  }, 60_000)

  test('in a workspace, an answer has the files that are new or changed since the last one', async () => {
    await using workspace = await at.sg.workspace()
    const given: string[][] = []
    const onFiles = (files: readonly { readonly path: string }[]): void => {
      given.push(files.map(({ path }) => path))
      if (given.length === 2) throw new Error('no room')
    }
    const { mcp } = at.sg.asTool({ workspace, collect: ['*.txt'], onFiles })
    const shownBy = async (script: string): Promise<string[]> => {
      const { content } = await mcp.handler({ script })
      return content.flatMap((block) => (block.type === 'resource' ? [block.resource.uri] : []))
    }
    const write = (path: string, text: string): string => `open("${path}", "w").write("${text}")`
    expect(await shownBy(`${write('a.txt', '1')}\n${write('b.txt', '1')}`)).toEqual([
      'sandbox:///a.txt',
      'sandbox:///b.txt',
    ])
    // No answer has come of it: its file is still new.
    await expect(shownBy(write('c.txt', '1'))).rejects.toThrow('no room')
    expect(await shownBy(write('b.txt', '2'))).toEqual(['sandbox:///b.txt', 'sandbox:///c.txt'])
    expect(await shownBy('not Python')).toEqual([])
    expect(await shownBy(write('a.txt', '1'))).toEqual([])
    expect(await shownBy(`import os\nos.remove("a.txt")\n${write('d.txt', '1')}`)).toEqual(['sandbox:///d.txt'])
    expect(await shownBy(write('a.txt', '1'))).toEqual(['sandbox:///a.txt'])
    expect(given).toEqual([['a.txt', 'b.txt'], ['c.txt'], ['b.txt', 'c.txt'], ['d.txt'], ['a.txt']])
  }, 60_000)
})
