import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  memoryStore,
  SandboxPool,
  type SandboxSpec,
  ToolOrchestrator,
  ToolRegistry,
} from '../../../src/index.ts'
import { resolveLimits, sandboxLimits } from '../../../src/sandbox/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import type { EngineAlone } from './engine-alone.ts'

const spec: SandboxSpec = { limits: sandboxLimits(resolveLimits({})) }
const tool = (name: string, answer: number): ReturnType<typeof defineTool> =>
  defineTool({
    name,
    description: name,
    effect: 'read',
    input: z.object({}),
    output: z.number(),
    execute: () => answer,
  })
const registry = new ToolRegistry()
  .register(tool('price', 5), { sandbox: 'shop' })
  .register(tool('price', 7), { sandbox: 'market' })
  .register(tool('rate', 2), { sandbox: 'market' })

/** ToolOrchestrator with two sandbox specs (OR-01). */
export function orchestratorTests(at: EngineAlone): void {
  let pool: SandboxPool
  beforeAll(() => {
    pool = new SandboxPool({ engine: at.engine, specs: { shop: spec, market: spec }, poolSize: 1 })
  })
  afterAll(() => pool.close())
  const makeOrchestrator = (...answers: Parameters<typeof scriptedModel>): [ToolOrchestrator, readonly string[]] => {
    const model = scriptedModel(...answers)
    return [new ToolOrchestrator({ registry, pool, llmCall: model }), model.prompts]
  }

  test('each sandbox has the tools of its own (OR-11)', async () => {
    const [orchestrator, prompts] = makeOrchestrator('emit_result(price())')
    const shop = await orchestrator.execute('The price', 'shop')
    const market = await orchestrator.execute('The price', 'market')
    expect([shop.finalData, market.finalData]).toEqual([5, 7])
    expect([shop.record.sandboxName, market.record.sandboxName]).toEqual(['shop', 'market'])
    expect([shop.record.tools, market.record.tools]).toEqual([['price'], ['price', 'rate']])
    expect(prompts.map((prompt) => prompt.includes('def rate'))).toEqual([false, true])
  })

  test('tools of another sandbox are unknown names', async () => {
    const [orchestrator] = makeOrchestrator('emit_result(rate())', 'emit_result(price())')
    const result = await orchestrator.execute('The rate', 'shop')
    expect(result.finalData).toBe(5)
    expect(result.record.attempts[0]?.violations[0]?.code).toBe('unknown_name')
  })

  test('executeInteractive takes the maximum number of steps as a number (OR-03)', async () => {
    let n = 0
    const [orchestrator, prompts] = makeOrchestrator(() => `emit_intermediate("n", ${(n += 1)})`)
    const result = await orchestrator.executeInteractive('Count', 'shop', 3)
    expect(prompts.length).toBe(3)
    expect(result).toMatchObject({
      success: false,
      record: { status: 'steps-spent', maxSteps: 3, sandboxName: 'shop' },
    })
  })

  test('options of a task override those of the orchestrator', async () => {
    const model = scriptedModel('emit_result({}["a"])')
    const orchestrator = new ToolOrchestrator({ pool, llmCall: model, maxRetries: 5, policy: 'off' })
    const { record } = await orchestrator.execute('Anything', 'shop', { maxRetries: 1 })
    expect([record.attempts.length, record.maxRetries, record.policy]).toEqual([2, 1, 'off'])
  })

  test('many concurrent tasks share the pool, and each has its own record', async () => {
    const journal = memoryStore()
    const model = scriptedModel((prompt) => `emit_result(${/number (\d+)/.exec(prompt)?.[1]} * price())`)
    const orchestrator = new ToolOrchestrator({ registry, pool, llmCall: model, journal })
    const results = await Promise.all(Array.from({ length: 12 }, (_, n) => orchestrator.execute(`number ${n}`, 'shop')))
    expect(results.map(({ finalData }) => finalData)).toEqual(Array.from({ length: 12 }, (_, n) => n * 5))
    expect(new Set(results.map(({ record }) => record.runId)).size).toBe(12)
    expect((await journal.list()).length).toBe(12)
  }, 60_000)

  test('stream yields the events of the journal in order, and finally the result', async () => {
    const [orchestrator] = makeOrchestrator('emit_result({}["a"])', 'emit_result(price())')
    const types: string[] = []
    let answer: unknown
    for await (const item of orchestrator.stream('The price', { sandboxName: 'shop' })) {
      if (item.type === 'event') types.push(item.event.type)
      else if (item.type === 'result') answer = item.result.finalData
    }
    const attempt = ['prompt_written', 'script_generated', 'script_checked', 'sandbox_assigned']
    expect(types).toEqual([
      'run_started',
      ...attempt,
      'script_executed',
      'attempt_ended',
      ...attempt,
      'tool_called',
      'tool_answered',
      'script_executed',
      'attempt_ended',
      'run_ended',
    ])
    expect(answer).toBe(5)
  })

  test('leaving the stream cancels the task', async () => {
    const journal = memoryStore()
    const orchestrator = new ToolOrchestrator({ pool, llmCall: () => new Promise(() => {}), journal })
    let runId = ''
    for await (const item of orchestrator.stream('Anything', { sandboxName: 'shop', mode: 'interactive' })) {
      if (item.type !== 'event') continue
      runId = item.event.run_id
      if (item.event.type === 'prompt_written') break
    }
    expect((await journal.read(runId)).at(-1)).toMatchObject({ type: 'run_ended', status: 'cancelled' })
  })

  test('an exception of a listener is ignored', async () => {
    const [orchestrator] = makeOrchestrator('emit_intermediate("a", 1)\nemit_result(price())')
    const onEvent = (): never => {
      throw new Error('of the listener')
    }
    expect((await orchestrator.execute('The price', 'shop', { onEvent })).finalData).toBe(5)
  })

  test('an `output` whose own code throws is a mismatch, and feedback', async () => {
    const [orchestrator, prompts] = makeOrchestrator('emit_result(None)', 'emit_result([price()])')
    const output = z.unknown().transform((given) => (given as number[]).map((one) => one + 1))
    const result = await orchestrator.execute('The price', 'shop', { output })
    expect(result.finalData).toEqual([6])
    expect(prompts[1]).toContain('the result does not match `output`: ')
  })

  test('`output` may transform a result into a value that is not JSON', async () => {
    const [orchestrator] = makeOrchestrator('emit_result(price())')
    const circular = { self: null as unknown }
    circular.self = circular
    for (const [value, kept] of [
      [5n, '5n'],
      [circular, '<ref *1> { self: [Circular *1] }'],
    ] as const) {
      const output = z.number().transform((): unknown => value)
      const result = await orchestrator.execute('The price', 'shop', { output })
      expect([result.success, result.finalData, result.record.finalData]).toEqual([true, value, kept])
    }
  })
}
