import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  createSandglass,
  definePythonTool,
  defineTool,
  localEngine,
  type Sandbox,
  type SandboxEngine,
  SandboxPool,
  type Tool,
} from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { orchestrator, specs, TASK } from './lost-sandboxes.ts'

const { skip } = await requireLocalEngine()

/** The local engine, with every sandbox that it made. */
function watchedEngine(): {
  readonly engine: SandboxEngine
  readonly sandboxes: Sandbox[]
  readonly checkers: Sandbox[]
} {
  const sandboxes: Sandbox[] = []
  const checkers: Sandbox[] = []
  const inner = localEngine()
  const create: SandboxEngine['create'] = async (spec, options) => {
    const sandbox = await inner.create(spec, options)
    if (spec.checker === true) checkers.push(sandbox)
    else sandboxes.push(sandbox)
    return sandbox
  }
  const engine = { name: inner.name, report: inner.report.bind(inner), create, close: inner.close.bind(inner) }
  return { engine, sandboxes, checkers }
}

/** A tool whose first call ends the sandbox that made it. */
function lossAtFirst(
  sandboxes: readonly Sandbox[],
  effect: 'read' | 'write',
): { readonly tool: Tool; readonly calls: () => number } {
  let calls = 0
  const tool = defineTool({
    name: 'lookup',
    description: 'A number.',
    effect,
    input: z.object({}),
    output: z.number(),
    execute: async () => {
      calls += 1
      if (calls === 1) await sandboxes.at(-1)?.destroy()
      return calls
    },
  })
  return { tool, calls: () => calls }
}

describe.skipIf(skip)('a model is asked to fix only what its script did (OR-02, OR-08)', () => {
  test('a preamble that raises ends the task at once, in both modes', async () => {
    await using sg = await createSandglass({ engine: 'local' })
    for (const mode of ['plan', 'interactive'] as const) {
      const model = scriptedModel('emit_result(1)')
      const result = await sg.solve(TASK, { model, mode, preamble: 'rates = {}\nrates["USD"]' })
      expect(result).toMatchObject({
        success: false,
        error: "the preamble failed: KeyError: 'USD'",
        record: { status: 'infrastructure' },
      })
      expect(model.prompts.length).toBe(1)
    }
    const ran = await sg.run('print(1)', { preamble: 'raise SystemExit(3)' })
    expect(ran).toMatchObject({ status: 'failed', setupFailed: true, stdout: '' })
    expect(ran.error).toMatch(/^the preamble failed: SystemExit: 3/)
    expect(await sg.run('1/0', { preamble: 'x = 1' })).toMatchObject({ status: 'failed', setupFailed: false })
  })

  test.each([
    [
      'ends the process',
      'import os\nos._exit(3)',
      'crashed',
      /ended with exit code 3 .*, in the preamble or a Python tool/,
    ],
    [
      'is killed by a signal',
      'import os\nos.kill(os.getpid(), 11)',
      'crashed',
      /SIGSEGV, in the preamble or a Python tool/,
    ],
    ['does not end', 'while True: pass', 'timed-out', /^Script timed out after 0.5s, in the preamble or a Python tool/],
  ])('so does a preamble or a Python tool that %s', async (_, code, status, error) => {
    await using sg = await createSandglass({ engine: 'local' })
    const limits = { executionTimeoutSec: 0.5 }
    const tool = definePythonTool({ source: `${code}\ndef one():\n    "A number."\n    return 1\n` })
    for (const given of [{ preamble: code }, { tools: [tool] }]) {
      const model = scriptedModel('emit_result(1)')
      const result = await sg.solve(TASK, { model, limits, ...given })
      expect(result).toMatchObject({ success: false, record: { status: 'infrastructure' } })
      expect(result.error).toMatch(error)
      expect(model.prompts.length).toBe(1)
      expect(await sg.run('print(1)', { limits, ...given })).toMatchObject({ status, setupFailed: true, stdout: '' })
    }
    // The script is blamed for the same.
    expect(await sg.run(code, { limits, preamble: 'x = 1' })).toMatchObject({ status, setupFailed: false })
  })

  test('so do a missing secret of a Python tool and a Python tool that cannot be loaded', async () => {
    await using sg = await createSandglass({ engine: 'local' })
    const source = 'def sign():\n    "A number."\n    return 1\n'
    for (const [tool, error] of [
      [{ source, secrets: ['SIGN_KEY'] }, /secrets are missing: SIGN_KEY/],
      [{ source: `${source}1/0\n` }, /the Python tool sign could not be loaded: ZeroDivisionError/],
    ] as const) {
      const model = scriptedModel('emit_result(sign())')
      const result = await sg.solve(TASK, { model, tools: [definePythonTool(tool)] })
      expect(result).toMatchObject({ success: false, record: { status: 'infrastructure' } })
      expect(result.error).toMatch(error)
      expect(model.prompts.length).toBe(1)
    }
  })

  test('a script that claims a failed preamble is blamed for it, also beside a preamble that works', async () => {
    await using sg = await createSandglass({ engine: 'local' })
    const message = "the preamble failed: KeyError: 'USD'"
    const claim = JSON.stringify({ type: 'error', kind: 'setup', message, traceback: null })
    const script = `import os\nos.write(3, ${JSON.stringify(`${claim}\n`)}.encode())`
    const failed = { status: 'failed', error: message }
    const ran = { ...failed, setupFailed: false }
    for (const preamble of [undefined, 'rates = {"USD": 1}']) {
      const options = { policy: 'off', ...(preamble === undefined ? {} : { preamble }) } as const
      const model = scriptedModel(script, 'emit_result(1)')
      const result = await sg.solve(TASK, { model, ...options })
      expect(result).toMatchObject({ success: true, finalData: 1, record: { attempts: [failed, {}] } })
      expect(await sg.run(script, options)).toMatchObject(ran)
      await using workspace = await sg.workspace()
      expect(await workspace.run(script, options)).toMatchObject(ran)
    }
  })

  test('a sandbox that is lost: the same script runs once more, without a model call (PO-04)', async () => {
    const { engine, sandboxes } = watchedEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1 })
    const { tool, calls } = lossAtFirst(sandboxes, 'read')
    const model = scriptedModel('emit_intermediate("a", 1)\nemit_result(lookup())')
    for (const run of ['execute', 'executeInteractive'] as const) {
      const result = await orchestrator(pool, { llmCall: model, registry: [tool] })[run](TASK)
      expect(result).toMatchObject({ success: true, error: null })
    }
    expect(calls()).toBe(3)
    expect(model.prompts.length).toBe(2)
    const { tool: again } = lossAtFirst(sandboxes, 'read')
    const { record } = await orchestrator(pool, { llmCall: model, registry: [again] }).execute(TASK)
    const [attempt, ...more] = record.attempts
    expect(more).toEqual([])
    expect(attempt).toMatchObject({ status: 'completed', finalData: 2, intermediates: [{ label: 'a', data: 1 }] })
    expect(attempt?.rerun).toMatch(/destroyed|closed/)
    expect(attempt?.toolCalls.map(({ ok }) => ok)).toEqual([null, true])
    await engine.close()
  })

  test('but not after a call with the effect write began: the model is told of the loss', async () => {
    const { engine, sandboxes } = watchedEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1 })
    const { tool, calls } = lossAtFirst(sandboxes, 'write')
    const model = scriptedModel('emit_result(lookup())', 'emit_result(7)')
    const result = await orchestrator(pool, { llmCall: model, registry: [tool] }).execute(TASK)
    expect(result.finalData).toBe(7)
    expect(calls()).toBe(1)
    expect(result.record.attempts.map(({ status, rerun }) => [status, rerun])).toEqual([
      ['sandbox-lost', null],
      ['completed', null],
    ])
    await engine.close()
  })

  test('nor without tool calls left in the budget', async () => {
    const { engine, sandboxes } = watchedEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1 })
    const { tool } = lossAtFirst(sandboxes, 'read')
    const llmCall = scriptedModel('emit_result(lookup())')
    const result = await orchestrator(pool, { llmCall, registry: [tool], budget: { toolCalls: 1 } }).execute(TASK)
    expect(result).toMatchObject({
      error: 'the budget of 1 tool calls is spent',
      record: { status: 'budget-spent', attempts: [{ status: 'sandbox-lost', rerun: null }] },
    })
    await engine.close()
  })

  test('a checker that is lost is replaced once', async () => {
    const { engine, sandboxes, checkers } = watchedEngine()
    await using pool = new SandboxPool({ engine, specs, poolSize: 1 })
    const solve = orchestrator(pool, { llmCall: scriptedModel('emit_result(1)') })
    expect((await solve.execute(TASK)).finalData).toBe(1)
    const [checker] = checkers
    if (checker === undefined) throw new Error('no checker')
    // It ends in the middle of its next check.
    const send = checker.channel.send.bind(checker.channel)
    checker.channel.send = async (bytes) => {
      await checker.destroy()
      return send(bytes)
    }
    expect(await solve.execute(TASK)).toMatchObject({ success: true, finalData: 1, error: null })
    expect(checkers.length).toBe(2)
    expect(sandboxes.length).toBeGreaterThan(0)
    await engine.close()
  })

  test('a model that throws once is asked again; a second exception ends the task', async () => {
    await using sg = await createSandglass({ engine: 'local' })
    let asked = 0
    const failing =
      (times: number): (() => Promise<string>) =>
      async () => {
        asked += 1
        if (asked <= times) throw new Error('socket hang up')
        return 'emit_result(1)'
      }
    expect(await sg.solve(TASK, { model: failing(1) })).toMatchObject({ finalData: 1, error: null })
    expect(asked).toBe(2)
    asked = 0
    const result = await sg.solve(TASK, { model: failing(9) })
    expect(result).toMatchObject({ error: 'the model failed: socket hang up', record: { status: 'model-failed' } })
    expect(asked).toBe(2)
  })

  test('the data of a step that failed is kept, in prompts and in `collected`', async () => {
    await using sg = await createSandglass({ engine: 'local' })
    const model = scriptedModel(
      'emit_intermediate("a", 1)\nemit_intermediate("b", 2)\n1/0',
      (prompt) => {
        expect(prompt).toContain('step 1, "a": 1')
        return 'emit_intermediate("b", 3)'
      },
      'emit_result([[item["label"], item["data"]] for item in collected])',
    )
    const result = await sg.solve(TASK, { model, mode: 'interactive' })
    expect(result).toMatchObject({
      finalData: [
        ['a', 1],
        ['b', 3],
      ],
      error: null,
    })
  })

  test('maxHistoryChars bounds the data in a prompt, which says what was cut', async () => {
    await using sg = await createSandglass({ engine: 'local' })
    const model = scriptedModel('emit_intermediate("a", "x" * 5000)', 'emit_result(len(collected[0]["data"]))')
    const solve = (maxHistoryChars: number): Promise<unknown> =>
      sg.solve(TASK, { model, mode: 'interactive', maxHistoryChars })
    expect(await solve(500)).toMatchObject({ finalData: 5000, error: null })
    expect(model.prompts[1]).toContain('(1 long item is cut in the middle; collected has them whole)')
    expect(model.prompts[1]?.match(/x+/g)?.every((run) => run.length < 500)).toBe(true)
    await expect(solve(-1)).rejects.toThrow(/maxHistoryChars/)
  })
})
