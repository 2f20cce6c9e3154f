import { AIMessage, type BaseMessage } from '@langchain/core/messages'
import { MemorySaver } from '@langchain/langgraph'
import { afterAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createCodeAgent, LocalPythonExecutor } from '../../../src/code-agent/index.ts'
import { defineTool } from '../../../src/index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()

const executor = new LocalPythonExecutor()
afterAll(() => executor[Symbol.asyncDispose]())

test.skipIf(skip)(
  'a thread keeps 4 MiB of earlier replies and outputs, and each output until the model has seen it',
  async () => {
    const scripts = 8
    const photo = defineTool({
      name: 'photo',
      description: '',
      input: z.object({ n: z.int() }),
      effect: 'read',
      execute: ({ n }) => [
        { type: 'image_url', image_url: { url: `data:image/png;base64,${`${n}`.repeat(1_000_000)}` } },
      ],
    })
    const seen: BaseMessage[][] = []
    const model = {
      invoke: async (messages: unknown) => {
        const n = seen.push(messages as BaseMessage[])
        const script = `# ${'x'.repeat(600_000)}\nprint(photo(${n}))`
        return new AIMessage(n > scripts ? 'Done.' : `<execution-code>\n${script}\n</execution-code>`)
      },
    }
    const agent = await createCodeAgent({
      model,
      tools: [photo],
      executor,
      checkpointer: new MemorySaver(),
      review: 'never',
    })
    const { answer, records } = await agent.start('Look.', { thread: 'a' })
    expect(answer).toBe('Done.')
    for (const [index, messages] of seen.slice(1).entries())
      expect(JSON.stringify(messages.at(-1)?.content)).toContain(`base64,${index + 1}${index + 1}`)
    const sizes = seen.map((messages) => JSON.stringify(messages.map(({ content }) => content)).length)
    // The newest two outputs and the reply between them are not counted.
    expect(Math.max(...sizes)).toBeLessThan(4 * 1024 * 1024 + 2_700_000)
    expect(JSON.stringify(seen.at(-1)?.map(({ content }) => content))).toContain(
      '[This output of an earlier script is no longer kept.]',
    )
    const { values } = await agent.graph.getState({ configurable: { thread_id: 'a' } })
    expect((values as { messages: BaseMessage[] }).messages).toHaveLength(2 * scripts + 2)
    expect(JSON.stringify(values).length).toBeLessThan(10_000_000)
    // The newest scripts stay in full.
    expect(records).toHaveLength(scripts)
    expect(records.at(-1)).toMatchObject({ script: expect.stringMatching(/^\n# x{600000}\n/) as unknown })
    expect(JSON.stringify(records).length).toBeLessThan(4_500_000)
  },
)
