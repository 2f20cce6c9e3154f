import { AIMessage, type BaseMessage } from '@langchain/core/messages'
import { Command, MemorySaver } from '@langchain/langgraph'
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite'
import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  type CodeAgent,
  type CodeAgentOptions,
  type CodeAgentState,
  type CodeAnswer,
  type CodeToolExecutor,
  createCodeAgent,
  LocalPythonExecutor,
} from '../../../src/code-agent/index.ts'
import { defineTool, type Tool } from '../../../src/index.ts'
import type { Proposal } from '../../../src/review.ts'
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

  test('takes accept with another script, edit, respond and reject; asks again about a script with a mistake', async () => {
    const model = scriptedModel(code('print("a")'), code('print("b")'), code('print("c")'), code('print("d")'))
    const agent = await makeAgent({ model })
    const thread = 'b'
    const first = await agent.start('Go.', { thread })
    const wrong = await agent.answer({ ...to(first), decision: 'accept', script: 'print(' }, { thread })
    expect(wrong).toMatchObject({ status: 'waiting', proposal: { script: '\nprint("a")\n' } })
    expect(wrong.proposal?.problem).toMatch(/^the script was rejected before it ran: line 1: /)
    expect(wrong.proposal?.id).not.toBe(first.proposal?.id)
    const second = await agent.answer(
      { ...to(wrong), decision: 'accept', script: 'print("mine")', by: 'Ann' },
      { thread },
    )
    expect(second.records.at(-1)).toMatchObject({
      type: 'run',
      author: 'reviewer',
      script: 'print("mine")',
      outcome: 'ran',
    })
    expect(model.prompts[1]).toMatch(/mine\n$/)
    expect(second.proposal?.diff).toContain('-print("a")\n+print("b")')
    const third = await agent.answer({ ...to(second), decision: 'edit', text: 'Use c.' }, { thread })
    expect(model.prompts[2]).toMatch(/The script was not run\. The reviewer asks for a change: Use c\.$/)
    const fourth = await agent.answer({ ...to(third), decision: 'respond', text: 'Why c?' }, { thread })
    expect(model.prompts[3]).toMatch(/The reviewer did not accept it and says: Why c\?$/)
    const last = await agent.answer({ ...to(fourth), decision: 'reject', text: 'Enough.' }, { thread })
    expect(last).toMatchObject({ status: 'rejected', answer: null, proposal: null })
    expect(last.records.filter(({ type }) => type === 'run')).toHaveLength(1)
    await expect(agent.answer({ ...to(fourth), decision: 'accept' }, { thread })).rejects.toMatchObject({
      code: 'proposal_decided',
      message: expect.stringContaining('this proposal was decided before: reject') as unknown,
    })
  })

  test('tells the model what its mistakes are, and stops after the maximum of turns', async () => {
    const model = scriptedModel(
      '<execution-code>print(1)',
      code('print(absent)'),
      'x'.repeat(10 * 1024 * 1024),
      code('print(2)'),
      code('print(3)'),
    )
    const checkpointer = new MemorySaver()
    const agent = await makeAgent({ model, checkpointer, maxTurns: 4 })
    const state = await agent.start('Go.', { thread: 'c' })
    expect(model.prompts[1]).toMatch(/Error: Your reply has <execution-code> but no <\/execution-code> after it/)
    expect(model.prompts[2]).toMatch(/Error: the script was rejected before it ran: line 2: .*absent/)
    expect(model.prompts[3]).toMatch(/Error: your reply has 10485760 characters, and at most 1048576 are read/)
    expect(model.prompts[3]?.length).toBeLessThan(80_000)
    expect(state).toMatchObject({ status: 'waiting', proposal: { attempt: 4 } })
    const end = await agent.answer({ ...to(state), decision: 'accept' }, { thread: 'c' })
    expect(end).toMatchObject({ status: 'turns-exhausted', answer: null })
    // The next message has turns of its own.
    expect(await agent.start('And now?', { thread: 'c' })).toMatchObject({
      status: 'waiting',
      proposal: { attempt: 1 },
    })
    await expect(agent.start('And now?', { thread: 'c' })).rejects.toThrow(/waits for the answer to proposal/)
  })

  test('gives a chat model of LangChain the images of tools, in messages that providers take', async () => {
    const seen: BaseMessage[][] = []
    const replies = [code('print("shelf:", photo())'), 'A shelf.']
    const model = {
      invoke: async (messages: unknown) => {
        seen.push(messages as BaseMessage[])
        return new AIMessage(replies[seen.length - 1] ?? '')
      },
    }
    const agent = await makeAgent({ model, tools: [photo], review: 'never' })
    expect(await agent.start('Look.', { thread: 'd' })).toMatchObject({
      status: 'answered',
      answer: 'A shelf.',
      records: [{ type: 'run', proposal: null, author: 'model', outcome: 'ran' }],
    })
    expect(seen[1]?.map((message) => message.getType())).toEqual(['system', 'human', 'ai', 'human'])
    expect(seen[1]?.at(-1)?.content).toEqual([
      { type: 'text', text: 'shelf: ' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
      { type: 'text', text: '\n' },
    ])
    const { values } = await agent.graph.getState({ configurable: { thread_id: 'd' } })
    const { messages } = values as { messages: BaseMessage[] }
    expect(messages.map((message) => message.getType())).toEqual(['human', 'ai', 'tool', 'ai'])
  })

  test('asks a function within the process, and ends when its own scripts have mistakes again and again', async () => {
    const model = scriptedModel(code('print(1)'), 'Done.')
    const proposals: Proposal[] = []
    const agent = await makeAgent({
      model,
      review: (proposal) => {
        proposals.push(proposal)
        return { decision: 'accept', script: proposals.length === 1 ? 'print(' : 'print(2)' }
      },
    })
    expect(await agent.start('Go.', { thread: 'e' })).toMatchObject({ status: 'answered', answer: 'Done.' })
    expect(proposals.map(({ problem }) => problem !== null)).toEqual([false, true])
    const stubborn = await makeAgent({
      model: scriptedModel(code('print(1)')),
      review: () => ({ decision: 'accept', script: 'print(' }),
    })
    await expect(stubborn.start('Go.', { thread: 'e' })).rejects.toThrow(
      /11 scripts of the reviewer had mistakes, the last: .*line 1/,
    )
  })

  test('is resumed by a Command, which must name the proposal', async () => {
    const agent = await makeAgent({ model: scriptedModel(code('print(1)'), 'Done.') })
    const config = { configurable: { thread_id: 'f' }, durability: 'sync' }
    const { proposal } = await agent.start('Go.', { thread: 'f' })
    for (const [resume, problem] of [
      [{ decision: 'accept' }, /does not say which proposal/],
      [{ decision: 'accept', proposal: 'another' }, /was for another proposal/],
      [{ decision: 'perhaps', proposal: proposal?.id }, /is not one of accept/],
      ['yes', /does not say which proposal/],
    ] as const) {
      await agent.graph.invoke(new Command({ resume }), config)
      const { status, proposal: asked } = await agent.state({ thread: 'f' })
      expect({ status, id: asked?.id }).toEqual({ status: 'waiting', id: proposal?.id })
      expect(asked?.problem).toMatch(problem)
    }
    await agent.graph.invoke(new Command({ resume: { decision: 'accept', proposal: proposal?.id } }), config)
    expect(await agent.state({ thread: 'f' })).toMatchObject({ status: 'answered', answer: 'Done.' })
  })

  test.each(Object.entries(SAVERS))(
    'with a checkpointer in %s takes the first of several answers',
    async (_, makeSaver) => {
      const checkpointer = makeSaver()
      const counted = countTool()
      // As many agents as processes: they share nothing but the checkpointer.
      const agents = await Promise.all(
        Array.from({ length: 4 }, () =>
          makeAgent({
            model: async (prompt) => (prompt.includes('got 1') ? 'Done.' : code('print("got", count())')),
            tools: [counted.tool],
            checkpointer,
          }),
        ),
      )
      const [first] = agents
      const state = await first?.start('Go.', { thread: 'g' })
      const answers = await Promise.allSettled(
        agents.map((agent, index) =>
          agent.answer({ ...to(state), decision: 'accept', by: `reviewer ${index}` }, { thread: 'g' }),
        ),
      )
      const won = answers.filter((answer) => answer.status === 'fulfilled')
      const lost = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason as Error] : []))
      expect(won).toHaveLength(1)
      expect(counted.calls()).toBe(1)
      const end = await first?.state({ thread: 'g' })
      expect(end).toMatchObject({
        status: 'answered',
        answer: 'Done.',
        records: [{ type: 'decision' }, { type: 'run', outcome: 'ran' }],
      })
      const decision = end?.records.find((record) => record.type === 'decision')
      for (const error of lost)
        expect(error).toMatchObject({
          code: 'proposal_decided',
          message: expect.stringContaining(`accept by ${decision?.by} at `) as unknown,
        })
    },
  )

  test('whose checkpointer fails at any moment says so, and runs no script twice', { timeout: 120_000 }, async () => {
    for (let failAt = 1, wasHit = true; wasHit; failAt += 1) {
      let calls = 0
      const checkpointer = failingSaver(() => (calls += 1) === failAt)
      const counted = countTool()
      const agent = await makeAgent({
        model: async (prompt) => (/got 1|may have run/.test(prompt) ? 'Done.' : code('print("got", count())')),
        tools: [counted.tool],
        checkpointer,
      })
      const thread = String(failAt)
      const errors: unknown[] = []
      let state: CodeAgentState | undefined
      for (let tries = 0; tries < 10 && state?.status !== 'answered'; tries += 1) {
        try {
          state = await agent.state({ thread })
          if (state.status === 'idle') state = await agent.start('Go.', { thread })
          else if (state.status === 'unfinished') state = await agent.resume({ thread })
          else if (state.status === 'waiting')
            state = await agent.answer({ ...to(state), decision: 'accept' }, { thread })
        } catch (error) {
          errors.push(error)
        }
      }
      wasHit = calls >= failAt
      expect({ failAt, status: state?.status, runs: counted.calls() }).toEqual({ failAt, status: 'answered', runs: 1 })
      for (const error of errors) expect(error).toMatchObject({ name: 'SandglassError', code: 'checkpointer_failed' })
      expect(errors.length).toBe(wasHit ? 1 : 0)
    }
  })

  test.each(['answer', 'Command'] as const)(
    'whose checkpointer fails at any moment of an answer by %s follows no answer but the recorded one',
    { timeout: 120_000 },
    async (way) => {
      for (let failAt = 1, wasHit = true; wasHit; failAt += 1) {
        let [calls, armed] = [0, false]
        const agent = await makeAgent({
          model: async (prompt) => (prompt.includes('made by') ? 'Done.' : code('print("made by", "model")')),
          checkpointer: failingSaver(() => armed && (calls += 1) === failAt),
        })
        const thread = String(failAt)
        const config = { configurable: { thread_id: thread }, durability: 'sync' }
        let state = await agent.start('Go.', { thread })
        armed = true
        const failed = await send({ ...to(state), decision: 'accept', script: 'print("made by", 1)', by: 'Ann' })
        wasHit = calls >= failAt
        armed = false
        state = await agent.state({ thread })
        if (state.status === 'waiting') await send({ ...to(state), decision: 'reject', text: 'No.', by: 'Bob' })
        else if (state.status === 'unfinished') await agent.resume({ thread })
        const { status, records } = await agent.state({ thread })
        const decisions = records.flatMap((record) => (record.type === 'decision' ? [record.by] : []))
        const isBobs = state.status === 'waiting'
        expect({ failAt, status, decisions, runs: records.length - 1 }).toEqual({
          failAt,
          status: isBobs ? 'rejected' : 'answered',
          decisions: [isBobs ? 'Bob' : 'Ann'],
          runs: isBobs ? 0 : 1,
        })
        expect([undefined, 'checkpointer_failed']).toContain(failed)

        async function send(answer: CodeAnswer): Promise<unknown> {
          const sent =
            way === 'answer'
              ? agent.answer(answer, { thread })
              : agent.graph.invoke(new Command({ resume: answer }), config)
          return sent.then(
            () => undefined,
            (error: { code?: unknown }) => error.code ?? error,
          )
        }
      }
    },
  )

  test('runs a script once when two calls continue the graph at the same time', async () => {
    let [runs, tries] = [0, 0]
    const failing: CodeToolExecutor = {
      availableDependencies: [],
      workspaceFullPath: () => '/workspace',
      inspect: (...args) => executor.inspect(...args),
      execute: async (_tools, _script, _libraries, toolInitCallback) => {
        tries += 1
        if (tries === 1) throw new Error('no sandbox')
        toolInitCallback?.({ transport: 'stdio', tools: [] })
        runs += 1
        return 'ran'
      },
      [Symbol.asyncDispose]: async () => {},
    }
    const agent = await makeAgent({
      model: scriptedModel(code('print(1)'), 'Done.'),
      executor: failing,
      review: 'never',
    })
    await expect(agent.start('Go.', { thread: 'i' })).rejects.toThrow('no sandbox')
    const config = { configurable: { thread_id: 'i' }, durability: 'sync' }
    const ends = await Promise.allSettled([agent.graph.invoke(null, config), agent.graph.invoke(null, config)])
    expect(runs).toBe(1)
    expect(ends.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(ends.find((end) => end.status === 'rejected')?.reason).toMatchObject({ code: 'agent_busy' })
    expect(await agent.state({ thread: 'i' })).toMatchObject({ status: 'answered', answer: 'Done.' })
  })

  test('keeps a thread readable whatever a tool answers', async () => {
    let deep: unknown = 'x'
    for (let level = 0; level < 60; level += 1) deep = { deep }
    const resources = [{ lc: 1, type: 'constructor', id: ['nowhere'], kwargs: {} }, { lc: 2, type: 'undefined' }, deep]
    const evil = defineTool({
      name: 'evil',
      description: 'A page of the web.',
      input: z.object({}),
      effect: 'read',
      execute: () => ({ content: resources.map((resource) => ({ type: 'resource', resource })) }),
    })
    const agent = await makeAgent({
      model: scriptedModel(code('print(evil())'), 'Done.'),
      tools: [evil],
      review: 'never',
    })
    expect(await agent.start('Look.', { thread: 'j' })).toMatchObject({ status: 'answered', answer: 'Done.' })
    const { values } = await agent.graph.getState({ configurable: { thread_id: 'j' } })
    const { messages } = values as { messages: BaseMessage[] }
    expect(messages.at(-2)?.content).toBe(
      `${resources.map((resource) => JSON.stringify({ type: 'resource', resource })).join('')}\n`,
    )
  })

  test('refuses a checkpointer that keeps the last write, and options that are wrong', async () => {
    const model = scriptedModel(code('print(1)'), 'Done.')
    const forgetful = new (class extends MemorySaver {
      override async putWrites(...[config, writes, task]: Parameters<MemorySaver['putWrites']>): Promise<void> {
        const key = JSON.stringify([
          config.configurable?.['thread_id'],
          config.configurable?.['checkpoint_ns'],
          config.configurable?.['checkpoint_id'],
        ])
        Reflect.deleteProperty(this.writes, key)
        await super.putWrites(config, writes, task)
      }
    })()
    const agent = await makeAgent({ model, checkpointer: forgetful, review: 'never' })
    await expect(agent.start('Go.', { thread: 'h' })).rejects.toMatchObject({
      code: 'checkpointer_failed',
      message: expect.stringContaining('replaces the first write') as unknown,
    })
    for (const [wrong, message] of [
      [{ checkpointer: {} }, /checkpointer: must be a checkpointer of LangGraph/],
      [{ review: 'sometimes' }, /review: "sometimes" is none of/],
      [{ maxTurns: 0 }, /maxTurns: 0 is not a whole number from 1 to 200/],
      [{ modelTimeoutMs: -1 }, /modelTimeoutMs: -1 is not a positive number/],
      [{ executor: {} }, /executor: must be a CodeToolExecutor/],
      [{ model: 'gpt' }, /model: must be/],
      [{ reviewer: 'never' }, /unknown option "reviewer"/],
    ] as const)
      await expect(makeAgent({ model, ...(wrong as object) })).rejects.toThrow(message)
    await expect(agent.state({ thread: '' })).rejects.toThrow(/thread: "" is not a string of 1 to 500 characters/)
    await expect(agent.start(' ', { thread: 'h' })).rejects.toThrow(/the task " " is not a non-empty text/)
  })
})

/** A tool that returns how often it was called. */
function countTool(): { readonly tool: Tool; readonly calls: () => number } {
  let calls = 0
  const tool = defineTool({
    name: 'count',
    description: 'Counts.',
    input: z.object({}),
    output: z.int(),
    execute: () => (calls += 1),
  })
  return { tool, calls: () => calls }
}

/** The proposal of a state, as an answer names it. */
function to(state: CodeAgentState | undefined): { readonly proposal: string } {
  return { proposal: state?.proposal?.id ?? 'none' }
}

/** A checkpointer that fails when `isDue` says so, before it reads or writes. */
function failingSaver(isDue: () => boolean): MemorySaver {
  return new (class extends MemorySaver {
    override async getTuple(...args: Parameters<MemorySaver['getTuple']>): ReturnType<MemorySaver['getTuple']> {
      fail()
      return super.getTuple(...args)
    }
    override async put(...args: Parameters<MemorySaver['put']>): ReturnType<MemorySaver['put']> {
      fail()
      return super.put(...args)
    }
    override async putWrites(...args: Parameters<MemorySaver['putWrites']>): Promise<void> {
      fail()
      await super.putWrites(...args)
    }
  })()

  function fail(): void {
    if (isDue()) throw new Error('the disk is gone')
  }
}

function makeAgent(options: Partial<CodeAgentOptions> & Pick<CodeAgentOptions, 'model'>): Promise<CodeAgent> {
  return createCodeAgent({ executor, checkpointer: new MemorySaver(), ...options })
}
