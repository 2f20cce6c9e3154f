import { setTimeout as sleep } from 'node:timers/promises'
import { tool as aiTool } from 'ai'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { RunEvent } from '../../../src/executor/index.ts'
import type { PendingCall } from '../../../src/review/index.ts'
import { createSandglass, type Sandglass } from '../../../src/sandglass.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { defineTool, type Tool, type ToolEffect, type ToolOptions, type ToolsInput } from '../../../src/tools/index.ts'
import { eventually } from '../../support/eventually.ts'
import type { OnEngine } from './on-engine.ts'

const input = z.object({ to: z.string(), amount: z.int().default(1) })
/** The time limit of a script, in seconds, and the longer time until the person answers, in milliseconds. */
const [TIMEOUT_SEC, THINKING_MS] = [3, 3500]

/** A tool that pays, and what it paid. */
function payTool(options: Partial<ToolOptions<typeof input>> = {}): { pay: Tool; paid: unknown[] } {
  const paid: unknown[] = []
  const execute = (given: z.infer<typeof input>): number => {
    paid.push(given)
    return paid.length
  }
  return { pay: defineTool({ name: 'pay', description: '', input, approve: true, execute, ...options }), paid }
}

/** The calls that wait, as soon as there are this many. */
async function waitingCalls(sg: Pick<Sandglass, 'pending'>, count = 1): Promise<readonly PendingCall[]> {
  expect(
    await eventually(() => (sg.pending().length === count ? undefined : `${sg.pending().length} wait`), 10_000),
  ).toBe(undefined)
  return sg.pending()
}

async function onlyCall(sg: Pick<Sandglass, 'pending'>): Promise<PendingCall> {
  const [call] = await waitingCalls(sg)
  if (call === undefined) throw new Error('no call waits')
  return call
}

/** The next warning of this process with this code; Node and packages warn, too. */
function warningOf(code: string): Promise<Error> {
  const { promise, resolve } = Promise.withResolvers<Error>()
  const hear = (warning: Error & { code?: string }): void => {
    if (warning.code !== code) return
    process.off('warning', hear)
    resolve(warning)
  }
  process.on('warning', hear)
  return promise
}

const PAY = `
try:
    emit_result(pay("bob"))
except ToolError as error:
    emit_result([error.code, str(error)])`

/** Tests of calls that wait for a person. */
export function approvalTests(at: OnEngine): void {
  const { engine } = at

  test('a call waits until it is approved, and the deadline moves by that time; the events tell who decided', async () => {
    const { pay, paid } = payTool()
    const events: RunEvent[] = []
    const running = at.sg.run(PAY, {
      tools: [pay],
      limits: { executionTimeoutSec: TIMEOUT_SEC, maxToolWaitSec: 0 },
      onEvent: (event) => void events.push(event),
    })
    const call = await onlyCall(at.sg)
    await sleep(THINKING_MS)
    expect(paid).toEqual([])
    await at.sg.approve(call.id, { by: 'ann' })
    const { status, finalData, toolCalls, executionId } = await running
    expect([status, finalData, paid]).toEqual(['completed', 1, [{ to: 'bob', amount: 1 }]])
    expect(call).toEqual({
      id: expect.stringMatching(/^[\da-f-]{36}$/) as unknown,
      executionId,
      task: null,
      runId: null,
      tool: 'pay',
      effect: 'write',
      args: { to: 'bob', amount: 1 },
      line: 3,
      signal: expect.objectContaining({ aborted: true }) as unknown,
      since: expect.stringMatching(/^\d{4}-.*Z$/) as unknown,
    })
    expect(toolCalls.map(({ state, error }) => [state, error])).toEqual([['answered', null]])
    // The time of the tool, without that of the person.
    expect(toolCalls[0]?.ms).toBeLessThan(3000)
    const of = { executionId, callId: '1', approvalId: call.id, name: 'pay' }
    expect(events.filter(({ type }) => type.startsWith('approval'))).toEqual([
      { type: 'approval_requested', ...of, effect: 'write', args: { to: 'bob', amount: 1 } },
      {
        type: 'approval_decided',
        ...of,
        approved: true,
        reason: null,
        by: 'ann',
        args: null,
        waitedMs: expect.any(Number) as unknown,
      },
    ])
  }, 30_000)

  test('a denial is a ToolError with the reason; the second answer is told who was first; an unknown id is refused', async () => {
    const { pay, paid } = payTool()
    const running = at.sg.run(PAY, { tools: [pay] })
    const { id } = await onlyCall(at.sg)
    await at.sg.deny(id, 'not on a Sunday', { by: 'ann' })
    expect((await running).finalData).toEqual(['denied', 'pay: the call was denied: not on a Sunday'])
    expect(paid).toEqual([])
    await expect(at.sg.approve(id, { by: 'bob' })).rejects.toMatchObject({
      code: 'approval_decided',
      message: `call "${id}" does not wait any more: it was denied by ann`,
    })
    await expect(at.sg.approve('nothing')).rejects.toMatchObject({ code: 'approval_unknown' })
  })

  test('other arguments are checked; those that the tool refuses leave the call waiting', async () => {
    const { pay, paid } = payTool()
    const running = at.sg.run(PAY, { tools: [pay] })
    const { id } = await onlyCall(at.sg)
    await expect(at.sg.approve(id, { args: { to: 'eve', amount: 'all' } })).rejects.toMatchObject({
      code: 'approval_invalid',
    })
    expect(at.sg.pending().map((call) => call.id)).toEqual([id])
    await expect(at.sg.approve(id, { args: { toJSON: () => null } })).rejects.toThrow(
      'args: written as JSON, they are not an object with the arguments of the tool',
    )
    const args = { to: 'eve', amount: 2 }
    const approving = at.sg.approve(id, { args })
    args.to = 'mallory'
    await approving
    await running
    expect(paid).toEqual([{ to: 'eve', amount: 2 }])
  })

  test('a denial counts while the arguments of an approval are being checked', async () => {
    const checked = Promise.withResolvers<void>()
    const slow = z.object({ to: z.string().refine(async (to) => to === 'bob' || (await checked.promise, true)) })
    const paid: unknown[] = []
    const pay = defineTool({
      name: 'pay',
      description: '',
      input: slow,
      approve: true,
      execute: (given) => paid.push(given),
    })
    const running = at.sg.run(PAY, { tools: [pay] })
    const { id } = await onlyCall(at.sg)
    const approving = at.sg.approve(id, { args: { to: 'eve' }, by: 'ann' })
    await at.sg.deny(id, 'no', { by: 'bob' })
    checked.resolve()
    await expect(approving).rejects.toMatchObject({
      code: 'approval_decided',
      message: `call "${id}" does not wait any more: it was denied by bob`,
    })
    expect((await running).finalData).toEqual(['denied', 'pay: the call was denied: no'])
    expect(paid).toEqual([])
  })

  test('calls of asyncio.gather are told together; a pool of one serves other runs meanwhile', async () => {
    const told: (readonly PendingCall[])[] = []
    await using sg = await createSandglass({
      engine,
      poolSize: 1,
      maxOverflow: 0,
      approveWrites: true,
      onPending: (calls) => void told.push(calls),
    })
    const { pay, paid } = payTool({ approve: undefined })
    const script = `
import asyncio
async def main():
    return await asyncio.gather(pay("a"), pay("b"), pay("c"))
emit_result(sorted(asyncio.run(main())))`
    const running = sg.run(script, { tools: [pay] })
    await waitingCalls(sg, 3)
    expect((await sg.run('emit_result(1 + 1)')).finalData).toBe(2)
    expect(told.at(-1)?.length).toBe(3)
    await Promise.all(sg.pending().map(({ id }) => sg.approve(id)))
    expect((await running).finalData).toEqual([1, 2, 3])
    expect(paid.length).toBe(3)
    expect(sg.stats()).toMatchObject({ leased: 0 })
  }, 60_000)

  test.each<[ToolEffect, number]>([
    ['write', 1],
    ['idempotent', 1],
    ['read', 0],
  ])('approveWrites: a call with the effect %s waits: %i', async (effect, waits) => {
    const asked: string[] = []
    await using sg = await createSandglass({
      engine,
      poolSize: 1,
      approveWrites: true,
      onPending: async ([call]) => {
        asked.push(call?.tool ?? '')
        await sg.approve(call?.id ?? '')
      },
    })
    const { pay } = payTool({ effect, approve: undefined })
    expect((await sg.run(PAY, { tools: [pay] })).finalData).toBe(1)
    expect(asked).toHaveLength(waits)
  })

  test('nobody answers: the call is denied, and all later ones of the run at once', async () => {
    await using sg = await createSandglass({ engine, poolSize: 1, maxOverflow: 0, approvalTimeoutMs: 300 })
    const { pay, paid } = payTool()
    const script = `
import time
began = time.perf_counter()
got = []
for n in range(50):
    try:
        pay("bob")
    except ToolError as error:
        got.append(str(error))
emit_result([got[0], got[-1], len(got), time.perf_counter() - began])`
    const { finalData } = await sg.run<[string, string, number, number]>(script, { tools: [pay] })
    const noAnswer = 'pay: the call was denied: nobody answered within 300 ms (approvalTimeoutMs)'
    expect(finalData?.slice(0, 3)).toEqual([noAnswer, `${noAnswer} to an earlier call of this run`, 50])
    expect(finalData?.[3]).toBeLessThan(5)
    expect(paid).toEqual([])
  }, 30_000)

  test.each(['close', 'abort'])(
    '%s while a call waits: the run is cancelled, and the call is on record',
    async (how) => {
      await using sg = await createSandglass({ engine, poolSize: 1, maxOverflow: 0 })
      const { pay, paid } = payTool()
      const cancel = new AbortController()
      const running = sg.run(PAY, { tools: [pay], signal: cancel.signal })
      const { id } = await onlyCall(sg)
      if (how === 'close') await sg.close()
      else cancel.abort()
      const { status, toolCalls } = await running
      expect([status, toolCalls.map(({ state, error }) => [state, error?.code]), sg.pending(), paid]).toEqual([
        'cancelled',
        [['unanswered', 'approval_pending']],
        [],
        [],
      ])
      await expect(sg.approve(id)).rejects.toMatchObject({ code: 'approval_decided' })
    },
    30_000,
  )

  test('a function decides which calls must be approved; if it fails, the call is denied', async () => {
    const { pay, paid } = payTool({
      approve: ({ amount }) => {
        if (amount > 100) throw new Error('no such money')
        return amount > 10
      },
    })
    const script = `
got = [pay("a", 5)]
for amount in (50, 500):
    try:
        pay("b", amount)
    except ToolError as error:
        got.append(str(error))
emit_result(got)`
    const running = at.sg.run(script, { tools: [pay] })
    await at.sg.deny((await onlyCall(at.sg)).id)
    expect((await running).finalData).toEqual([
      1,
      'pay: the call was denied: a person did not approve it',
      'pay: the call was denied: approve failed: no such money',
    ])
    expect(paid).toEqual([{ to: 'a', amount: 5 }])
  })

  test('processor time that the script uses while a call waits is its own', async () => {
    const { pay } = payTool()
    const script = `
import threading
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
pay("bob")`
    const { status, durationMs } = await at.sg.run(script, { tools: [pay], limits: { executionTimeoutSec: 1 } })
    expect(status).toBe('timed-out')
    expect(durationMs).toBeLessThan(8000)
  }, 30_000)

  test('secrets of the run are not shown', async () => {
    const { pay, paid } = payTool()
    const secret = 'hunter2-secret-value'
    const running = at.sg.run('import os\nemit_result(pay(os.environ["TOKEN"]))', {
      tools: [pay],
      secrets: { TOKEN: secret },
    })
    const { id, args } = await onlyCall(at.sg)
    expect(args).toEqual({ to: '[redacted:TOKEN]', amount: 1 })
    await at.sg.approve(id)
    await running
    expect(paid).toEqual([{ to: secret, amount: 1 }])
  })

  test('asTool takes toolApproval of the AI SDK, and needsApproval of its tools', async () => {
    const paid: unknown[] = []
    const toolOf = (needsApproval?: boolean): unknown =>
      aiTool({
        inputSchema: input,
        ...(needsApproval === undefined ? {} : { needsApproval }),
        execute: (given) => paid.push(given),
      })
    const tools = { pay: toolOf(), refund: toolOf(true), drop: toolOf() } as ToolsInput
    const tool = at.sg.asTool({
      tools,
      toolApproval: { pay: 'user-approval', drop: { type: 'denied', reason: 'never' } },
    })
    const script = `
got = []
for call in (pay, refund, drop):
    try:
        call("bob")
    except ToolError as error:
        got.append(str(error))
emit_result(got)`
    const running = tool.execute({ script })
    await at.sg.deny((await onlyCall(at.sg)).id, 'first')
    const second = await eventually(
      () => (at.sg.pending()[0]?.tool === 'refund' ? undefined : 'no second call'),
      10_000,
    )
    expect(second).toBe(undefined)
    await at.sg.deny((await onlyCall(at.sg)).id, 'second')
    expect((await running).result).toEqual([
      'pay: the call was denied: first',
      'refund: the call was denied: second',
      'drop: the call was denied: never',
    ])
    expect(paid).toEqual([])
    expect(() => at.sg.asTool({ tools, toolApproval: { payy: 'user-approval' } })).toThrow(
      'toolApproval: no tool "payy" on the host. Did you mean "pay"?',
    )
  }, 30_000)

  test('solve: the journal and the record have who decided, when, and with which arguments', async () => {
    const { pay } = payTool()
    const model = scriptedModel('emit_result(pay("bob"))')
    const running = at.sg.solve('Pay Bob.', { model, tools: [pay] })
    const { id, task, runId } = await onlyCall(at.sg)
    await at.sg.approve(id, { by: 'ann', args: { to: 'eve', amount: 3 } })
    const { record } = await running
    expect([task, runId]).toEqual(['Pay Bob.', record.runId])
    expect(record.attempts[0]?.toolCalls).toMatchObject([
      {
        name: 'pay',
        ok: true,
        args: { to: 'bob', amount: 1 },
        approval: {
          approved: true,
          by: 'ann',
          args: { to: 'eve', amount: 3 },
          decidedAt: expect.stringMatching(/Z$/) as unknown,
        },
      },
    ])
  }, 30_000)

  test('close while a call of a task waits: the task is cancelled, and its record has the call without a decision', async () => {
    await using sg = await createSandglass({ engine, poolSize: 1, maxOverflow: 0 })
    const { pay, paid } = payTool()
    const running = sg.solve('Pay Bob.', { model: scriptedModel('emit_result(pay("bob"))'), tools: [pay] })
    await onlyCall(sg)
    await sg.close()
    const { record } = await running
    const approvals = record.attempts.flatMap(({ toolCalls }) => toolCalls.map(({ approval }) => approval?.approved))
    expect([record.status, approvals, paid]).toEqual(['cancelled', [null], []])
  }, 30_000)

  test('a workspace does not close for idleness while a call waits', async () => {
    await using workspace = await at.sg.workspace({ idleTimeoutSec: 1 })
    const { pay } = payTool()
    const limits = { executionTimeoutSec: TIMEOUT_SEC, maxToolWaitSec: 0 }
    const running = at.sg.run(PAY, { tools: [pay], workspace, limits })
    const { id } = await onlyCall(at.sg)
    await sleep(THINKING_MS)
    await at.sg.approve(id)
    expect((await running).finalData).toBe(1)
  }, 30_000)

  test('tools that are wrong cost no lease, and leave a workspace free', async () => {
    await using sg = await createSandglass({ engine: 'pyodide', poolSize: 1, maxOverflow: 0 })
    const { pay } = payTool()
    const wrong = { tools: [{ name: 'x' }] as never }
    await expect(sg.run('emit_result(1)', { tools: [pay], signal: {} as never })).rejects.toMatchObject({
      code: 'invalid_request',
    })
    await expect(sg.run('emit_result(1)', wrong)).rejects.toThrow(TypeError)
    expect(sg.stats()).toMatchObject({ leased: 0 })
    await using workspace = await sg.workspace()
    await expect(sg.run('emit_result(1)', { ...wrong, workspace })).rejects.toThrow(TypeError)
    expect((await sg.run('emit_result(1)', { workspace })).finalData).toBe(1)
  }, 60_000)

  test('the error of onPending is told on the host, not to the script', async () => {
    const told = warningOf('SANDGLASS_ON_PENDING')
    const error = new Error('https://hook.example/TOKEN is down')
    await using sg = await createSandglass({
      engine,
      poolSize: 1,
      onPending: () => {
        throw error
      },
    })
    const { pay, paid } = payTool()
    const { finalData } = await sg.run(PAY, { tools: [pay] })
    expect([finalData, paid]).toEqual([['denied', 'pay: the call was denied: nobody could be asked'], []])
    expect((await told).message).toBe(`onPending failed: ${error.message}`)
  }, 30_000)

  test('a call that needs approval while the Sandglass closes is denied at once', async () => {
    await using sg = await createSandglass({ engine, poolSize: 1, maxOverflow: 0 })
    const { pay, paid } = payTool()
    const { promise: began, resolve: begin } = Promise.withResolvers<void>()
    const { promise: closing, resolve: goOn } = Promise.withResolvers<void>()
    const hold = defineTool({
      name: 'hold',
      description: '',
      input: z.object({}),
      execute: async () => {
        begin()
        await closing
        return 0
      },
    })
    const running = sg.run(`hold()${PAY}`, { tools: [pay, hold] })
    await began
    const closed = sg.close({ graceMs: 5000 })
    goOn()
    const { status, finalData } = await running
    await closed
    expect([status, finalData]).toEqual([
      'completed',
      ['denied', 'pay: the call was denied: this Sandglass is closing, and nobody is asked any more'],
    ])
    expect(paid).toEqual([])
  }, 30_000)
}
