import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../support/local-engine.ts'
import { fencesOf, printedBy, textOf } from '../support/run-example.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const { skip } = await requireLocalEngine()

/** The sections of docs/agents.md by heading, the text before the first one under ''. */
const sections = new Map(
  readFileSync(join(ROOT, 'docs/agents.md'), 'utf8')
    .split(/^## /m)
    .map((text, index) => (index === 0 ? ['', text] : [text.slice(0, text.indexOf('\n')), text])),
)
const tools = textOf(fencesOf(sections.get('') ?? ''), 'ts')

describe.concurrent('docs/agents.md', () => {
  test.skipIf(skip).each([
    ['AI SDK: generateText', 'ai-sdk-model'],
    ['AI SDK: ToolLoopAgent with progress', 'ai-sdk-model'],
    ['LangChain', 'langchain-model'],
    ['OpenAI Agents', 'openai-agents-model'],
  ])('%s prints the documented output, with a scripted model', (heading, model) => {
    const fences = fencesOf(sections.get(heading) ?? '')
    const path = join(ROOT, 'test/support/agents', `${model}.main.ts`)
    const files = { 'tools.ts': tools, 'model.ts': `export { model } from '${path}'\n` }
    expect(printedBy(textOf(fences, 'ts'), files)).toBe(textOf(fences, 'text'))
  })

  test.skipIf(skip).each(['Files', 'Variables that stay'])('%s: what the example prints', (heading) => {
    const fences = fencesOf(sections.get(heading) ?? '')
    expect(printedBy(textOf(fences, 'ts'), {})).toBe(textOf(fences, 'text'))
  })

  test.skipIf(skip)('MCP: the server answers the client', () => {
    const fences = fencesOf(sections.get('MCP') ?? '')
    const [server = '', client = ''] = fences.flatMap(({ language, text }) => (language === 'ts' ? [text] : []))
    expect(printedBy(client, { 'tools.ts': tools, 'server.ts': server })).toBe(textOf(fences, 'text'))
  })
})
