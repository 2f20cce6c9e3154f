import { MemorySaver } from '@langchain/langgraph'
import { afterAll, describe, expect, test } from 'vitest'
import {
  type CodeAgent,
  type CodeAgentOptions,
  type CodeToolExecutor,
  createCodeAgent,
  LocalPythonExecutor,
} from '../../../src/code-agent/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()

const executor = new LocalPythonExecutor()
afterAll(() => executor[Symbol.asyncDispose]())

describe.skipIf(skip)('a thread of a code agent', () => {
  test('whose proposal waits needs an answer, even with an agent without reviews', async () => {
    const model = scriptedModel('<execution-code>\nprint(1)\n</execution-code>', 'Done.')
    const parts = { model, executor, checkpointer: new MemorySaver() }
    const thread = 'a'
    const { proposal } = await (await createCodeAgent(parts)).start('Go.', { thread })
    const agent = await createCodeAgent({ ...parts, review: 'never' })
    expect(await agent.resume({ thread })).toMatchObject({ status: 'waiting', proposal: { id: proposal?.id } })
    await expect(agent.answer({ decision: 'accept' } as never, { thread })).rejects.toThrow(
      'proposal: undefined is not the id of a proposal',
    )
    const end = await agent.answer({ proposal: proposal?.id ?? '', decision: 'accept' }, { thread })
    expect(end).toMatchObject({ status: 'answered', answer: 'Done.' })
  })

  test.each([
    ['before its script began', 'ran', 2],
    ['while its script ran', 'may-have-run', 1],
  ])('whose executor failed %s is resumed; the script then has the outcome %s', async (_, outcome, tries) => {
    const counted = countingExecutor(async (begin, count) => {
      if (count === 2 || tries === 1) begin()
      if (count === 1) throw new Error('the machine failed')
      return 'ran'
    })
    const agent = await unreviewed(counted.executor)
    const thread = 'a'
    await expect(agent.start('Go.', { thread })).rejects.toThrow('the machine failed')
    expect(await agent.state({ thread })).toMatchObject({ status: 'unfinished' })
    expect(await agent.resume({ thread })).toMatchObject({ status: 'answered', records: [{ type: 'run', outcome }] })
    expect(counted.count()).toBe(tries)
  })

  test('is taken over from an agent that may still run its script; nothing runs twice', async () => {
    const checkpointer = new MemorySaver()
    const [began, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const counted = countingExecutor(async (begin) => {
      begin()
      began.resolve()
      await ended.promise
      return 'ran'
    })
    const thread = 'a'
    const first = await unreviewed(counted.executor, { checkpointer })
    const running = first.start('Go.', { thread })
    await began.promise
    const second = await unreviewed(counted.executor, { checkpointer, model: scriptedModel('Done.') })
    await expect(second.resume({ thread })).rejects.toMatchObject({
      code: 'agent_busy',
      message: expect.stringContaining('call resume({ takeOver: true })') as unknown,
    })
    expect(await second.resume({ thread, takeOver: true })).toMatchObject({
      status: 'answered',
      records: [{ type: 'run', outcome: 'may-have-run' }],
    })
    ended.resolve()
    await running
    expect(counted.count()).toBe(1)
  })
})

/** An executor that counts its scripts, and does `act` in place of each. */
function countingExecutor(act: (begin: () => void, count: number) => Promise<string>): {
  readonly executor: CodeToolExecutor
  readonly count: () => number
} {
  let count = 0
  return {
    count: () => count,
    executor: {
      availableDependencies: [],
      workspaceFullPath: () => '/workspace',
      inspect: (...args) => executor.inspect(...args),
      execute: (_tools, _script, _libraries, begin) => {
        count += 1
        return act(() => begin?.({ transport: 'stdio', tools: [] }), count)
      },
      [Symbol.asyncDispose]: async () => {},
    },
  }
}

function unreviewed(ownExecutor: CodeToolExecutor, options: Partial<CodeAgentOptions> = {}): Promise<CodeAgent> {
  const model = scriptedModel('<execution-code>\nprint(1)\n</execution-code>', 'Done.')
  return createCodeAgent({
    model,
    executor: ownExecutor,
    checkpointer: new MemorySaver(),
    review: 'never',
    ...options,
  })
}
