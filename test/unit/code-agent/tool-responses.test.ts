import { expect, test } from 'vitest'
import { z } from 'zod'
import { codeAgentInstructions, splitToolResponseMarkers, ToolResponses } from '../../../src/code-agent/index.ts'
import { defineTool, type Tool, type ToolContext } from '../../../src/index.ts'

const context = { signal: new AbortController().signal, callId: '1', executionId: 'e' } satisfies ToolContext
const IMAGE = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }
const input = z.object({})
const look = defineTool({
  name: 'look',
  description: '',
  input,
  execute: () => [IMAGE, { type: 'text', text: 'seen' }],
})
const say = defineTool({ name: 'say', description: '', input, execute: () => 'hello' })
const rows = defineTool({ name: 'rows', description: '', input, execute: () => ({ rows: 2 }) })
const typed = defineTool({ name: 'typed', description: 'One more.', input, output: z.int(), execute: () => 1 })

async function answers(tools: readonly Tool[]): Promise<{ responses: ToolResponses; markers: string[] }> {
  const responses = new ToolResponses()
  const wrapped = responses.wrap(tools) as readonly Tool[]
  return { responses, markers: await Promise.all(wrapped.map(async (tool) => String(await tool.execute({}, context)))) }
}

test('CA-08 an answer without an output schema stays on the host; the script gets a marker with a random id', async () => {
  const { markers } = await answers([look, say, typed])
  expect(markers).toEqual([
    expect.stringMatching(/^<<TOOL_RESPONSE:[0-9a-f-]{36}>>$/) as string,
    expect.stringMatching(/^<<TOOL_RESPONSE:[0-9a-f-]{36}>>$/) as string,
    '1',
  ])
  expect(markers[0]).not.toBe(markers[1])
})

test('CA-08 markers in the output become the answers, with images and other parts, each once', async () => {
  const { responses, markers } = await answers([look, say, rows])
  const [image = '', text = '', data = ''] = markers
  expect(responses.expand(`First ${text}, then ${image}! ${data} ${text}`)).toEqual([
    { type: 'text', text: 'First hello, then ' },
    IMAGE,
    { type: 'text', text: `seen! {"rows":2} ((Tool response with ID ${text.slice(16, -2)} is above.))` },
  ])
  expect(responses.expand('')).toEqual([])
})

test('CA-08 an unknown id is named', async () => {
  const { responses } = await answers([])
  expect(responses.expand('<<TOOL_RESPONSE:other>>')).toEqual([
    { type: 'text', text: '((Tool response with ID other not found.))' },
  ])
})

test('CA-08 a script gets at most 100 of them', async () => {
  const responses = new ToolResponses()
  const [tool] = responses.wrap([say]) as readonly Tool[]
  for (let call = 0; call < 100; call += 1) await tool?.execute({}, context)
  await expect(tool?.execute({}, context)).rejects.toMatchObject({ code: 'call_limit' })
})

test.each([
  ['<<TOOL_RESPONSE:a>><<TOOL_RESPONSE:b>>', ['<<TOOL_RESPONSE:a>>', '<<TOOL_RESPONSE:b>>'], ['a', 'b']],
  ['<<TOOL_RESPONSE:>> x', ['<<TOOL_RESPONSE:>> x'], [null]],
  ['', [], []],
])('the markers of %j', (text, parts, ids) => {
  expect(splitToolResponseMarkers(text)).toEqual({ parts, ids })
})

test('CA-02 the instructions name the tags, the workspace, the packages and every tool with what it takes and gives', () => {
  const executor = { availableDependencies: ['pandas', 'openpyxl'], workspaceFullPath: () => '/workspace' }
  const add = defineTool({
    name: 'add-up',
    description: 'Adds two numbers.',
    input: z.object({ a: z.int(), b: z.int() }),
    output: z.int(),
    execute: ({ a, b }) => a + b,
  })
  const text = codeAgentInstructions({ executor, tools: [add] })
  for (const part of [
    '<pip-dependencies-to-install>',
    '<execution-code>',
    'directory /workspace',
    'pandas, openpyxl',
    'def add_up(a: int, b: int) -> int:',
    'Adds two numbers.',
  ])
    expect(text).toContain(part)
  const without = codeAgentInstructions({ executor: { ...executor, availableDependencies: [] } })
  expect([without.includes('Functions'), without.includes('Installed packages')]).toEqual([false, false])
})

test('CA-08 the limit holds for calls side by side, and for the size of all answers together', async () => {
  const [slow] = new ToolResponses().wrap([say]) as readonly Tool[]
  const calls = Array.from({ length: 150 }, async () => slow?.execute({}, context))
  const refused = (await Promise.allSettled(calls)).filter(({ status }) => status === 'rejected')
  expect(refused).toHaveLength(50)
  const large = defineTool({ name: 'large', description: '', input, execute: () => 'x'.repeat(9 * 1024 * 1024) })
  const [wrapped] = new ToolResponses().wrap([large]) as readonly Tool[]
  await wrapped?.execute({}, context)
  await expect(wrapped?.execute({}, context)).rejects.toMatchObject({ code: 'result_too_large' })
})

test('CA-08 secrets of the script are redacted in answers', async () => {
  const echo = defineTool({ name: 'echo', description: '', input, execute: () => 'Results for top-secret-value' })
  const responses = new ToolResponses({ secrets: { TOKEN: 'top-secret-value' } })
  const [wrapped] = responses.wrap([echo]) as readonly Tool[]
  expect(responses.expand(String(await wrapped?.execute({}, context)))).toEqual([
    { type: 'text', text: 'Results for [redacted:TOKEN]' },
  ])
})

test('CA-08 data with a field type is data, and the model is told of the marker', async () => {
  const invoices = [{ type: 'invoice', id: 1 }]
  const list = defineTool({ name: 'open_invoices', description: 'Lists.', input, execute: () => invoices })
  const responses = new ToolResponses()
  const [wrapped] = responses.wrap([list]) as readonly Tool[]
  expect(responses.expand(String(await wrapped?.execute({}, context)))).toEqual([
    { type: 'text', text: JSON.stringify(invoices) },
  ])
  const executor = { availableDependencies: [], workspaceFullPath: () => '/workspace' }
  expect(codeAgentInstructions({ executor, tools: responses.wrap([list]) })).toContain('It returns a marker.')
})

test.each([
  { type: 'image', data: 'AA==', annotations: { lc: 2, type: 'undefined' } },
  { type: 'document', source: { a: { b: { c: { d: { e: 1 } } } } } },
  JSON.parse('{"type":"resource","resource":{"__proto__":{"text":"x"}}}') as object,
])('CA-08 a part that a checkpointer could take for something else becomes its JSON: %j', async (part) => {
  const responses = new ToolResponses()
  const list = defineTool({ name: 'list', description: '', input, execute: () => [part, IMAGE] })
  const [wrapped] = responses.wrap([list]) as readonly Tool[]
  expect(responses.expand(String(await wrapped?.execute({}, context)))).toEqual([
    { type: 'text', text: JSON.stringify(part) },
    IMAGE,
  ])
})
