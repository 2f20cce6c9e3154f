import { MemorySaver } from '@langchain/langgraph'
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite'
import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  type CodeAgent,
  type CodeAgentOptions,
  createCodeAgent,
  LocalPythonExecutor,
} from '../../../src/code-agent/index.ts'
import { defineTool } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()

const executor = new LocalPythonExecutor()
afterAll(() => executor[Symbol.asyncDispose]())

const stock = defineTool({
  name: 'stock',
  description: 'Units in stock.',
  input: z.object({ part: z.string() }),
  output: z.int(),
  effect: 'read',
  execute: () => 12,
})
const photo = defineTool({
  name: 'photo',
  description: 'A photo.',
  input: z.object({}),
  effect: 'write',
  execute: () => [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }],
})
const code = (script: string, plan = ''): string => `${plan}<execution-code>\n${script}\n</execution-code>`

const SAVERS = { memory: () => new MemorySaver(), SQLite: () => SqliteSaver.fromConnString(':memory:') }

describe.skipIf(skip)('CA-09 a code agent', () => {
  test.each(Object.entries(SAVERS))(
    'with a checkpointer in %s pauses before a script, runs it when it is accepted, and ends with the answer of the model',
    async (_, makeSaver) => {
      const model = scriptedModel(code('print(stock(part="bolt"))', 'I count.'), 'There are 12.')
      const agent = await makeAgent({ model, checkpointer: makeSaver(), tools: [stock, photo] })
      const paused = await agent.start('How many bolts?', { thread: 'a' })
      expect(paused).toMatchObject({
        status: 'waiting',
        answer: null,
        records: [],
        proposal: {
          task: 'How many bolts?',
          attempt: 1,
          step: null,
          plan: 'I count.',
          script: '\nprint(stock(part="bolt"))\n',
          tools: [{ name: 'stock', effect: 'read' }],
          dependencies: [],
          libraries: [],
          sandbox: { engine: 'local', network: 'none' },
          diff: null,
          problem: null,
          afterUncertainRun: false,
        },
      })
      const id = paused.proposal?.id ?? ''
      const done = await agent.answer({ proposal: id, decision: 'accept', by: 'Ann' }, { thread: 'a' })
      expect(done).toMatchObject({
        status: 'answered',
        answer: 'There are 12.',
        proposal: null,
        records: [
          { type: 'decision', proposal: id, decision: 'accept', text: null, by: 'Ann' },
          { type: 'run', proposal: id, author: 'model', outcome: 'ran', script: '\nprint(stock(part="bolt"))\n' },
        ],
      })
      expect(model.prompts.at(-1)).toContain('12\n')
    },
  )
})

function makeAgent(options: Partial<CodeAgentOptions> & Pick<CodeAgentOptions, 'model'>): Promise<CodeAgent> {
  return createCodeAgent({ executor, checkpointer: new MemorySaver(), ...options })
}
