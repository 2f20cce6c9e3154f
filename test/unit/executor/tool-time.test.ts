import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type ExecutionResult, ScriptExecutor, type ToolPort, type ToolRun } from '../../../src/executor/index.ts'
import { type ReplaySandbox, replayChannel, wireLines } from '../../../src/testing/index.ts'
import { frame, ID } from './wire.ts'

/** The answer of a port to a call; `executes` starts the host's clock. */
type Take = (run: ToolRun, id: string) => void

interface Playing {
  readonly sandbox: ReplaySandbox
  readonly settled: () => boolean
  readonly running: Promise<ExecutionResult>
}

/** Starts a run of 10 s in a sandbox that sends tool calls with these ids, and then nothing. */
function start(ids: readonly string[], take: Take, maxToolWaitSec = 300, mayWait = false): Playing {
  const calls = ids.map((id) => wireLines(frame('tool_call', { id, name: 'work', args: {} })))
  const sandbox = replayChannel(calls, { after: 'open' })
  const open = (run: ToolRun): ToolPort => ({
    take: async (call) => {
      run.noteCall(call, 'read')
      take(run, call.id)
    },
    close: () => {},
  })
  const executor = new ScriptExecutor({ limits: { executionTimeoutSec: 10, maxToolWaitSec } })
  const signature = { name: 'work', params: [], more: false, returns: 'Any', doc: '', types: '' }
  let isSettled = false
  const running = executor.run({
    sandbox,
    script: 'work()',
    executionId: ID,
    tools: { signatures: [signature], mayWait, open },
  })
  void running.then(() => (isSettled = true))
  return { sandbox, settled: () => isSettled, running }
}

/** The seconds after which a run settles. */
async function settlesAfter({ settled }: Playing): Promise<number> {
  for (let seconds = 0; seconds < 1000; seconds += 1) {
    if (settled()) return seconds
    await vi.advanceTimersByTimeAsync(1000)
  }
  throw new Error('it never settles')
}

const told = ({ sandbox }: Playing): unknown[] =>
  sandbox.sent.flatMap((sent) => (sent.type === 'tool_time' ? [[sent.executed_ms, sent.executing]] : []))

// EX-08
describe('time in which tools execute on the host', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test('of a call that waits for a person it counts apart, and the harness hears when tools have used up theirs', async () => {
    const take: Take = (port, id) => {
      const decide = port.noteApproval(id, 'approval-1', {})
      setTimeout(() => {
        decide({ approved: true, args: null, by: null })
        setTimeout(port.noteExecution(id), 50_000)
      }, 100_000)
    }
    const run = start(['1'], take, 20, true)
    const settled = await settlesAfter(run)
    const asked = run.sandbox.sent.find((sent) => sent.type === 'execute')
    expect(asked).toMatchObject({ max_tool_wait_sec: 20 + 30 * 24 * 3600 })
    expect(told(run)).toEqual([
      [10, true],
      [100_000, false],
      [100_010, true],
      [120_000, false],
    ])
    expect(settled).toBe(10 + 100 + 20 + 5)
  })

  test('moves the backstop by exactly this time, and the harness is informed', async () => {
    const run = start(['1'], (port, id) => {
      const noteEnd = port.noteExecution(id)
      setTimeout(noteEnd, 40_000)
    })
    expect(await settlesAfter(run)).toBe(55)
    expect(told(run)).toEqual([
      [10, true],
      [40_000, false],
    ])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('counts once for overlapping calls', async () => {
    const run = start(['1', '2', '3'], (port, id) => void setTimeout(port.noteExecution(id), 10_000 * Number(id)))
    expect(await settlesAfter(run)).toBe(45)
  })

  test('is maxToolWaitSec at most, for a tool that never answers, which the result lists', async () => {
    const run = start(['1', '2'], (port, id) => void (id === '1' && port.noteExecution(id)), 20)
    expect(await settlesAfter(run)).toBe(35)
    const { status, error, toolCalls, warnings } = await run.running
    expect({ status, error }).toEqual({ status: 'timed-out', error: 'Timed out waiting for container response' })
    const ms: unknown = expect.any(Number)
    const call = {
      name: 'work',
      ms,
      effect: 'read',
      args: {},
      state: 'unanswered',
      ok: false,
    }
    expect(toolCalls).toEqual([
      { ...call, error: { code: 'cancelled', message: 'the run ended before the tool answered' } },
      { ...call, error: { code: 'not_called', message: 'the run ended before the tool was called' } },
    ])
    expect(warnings.map(({ code }) => code)).toEqual(['tool_calls_unanswered'])
  })

  test.each([
    ['calls that are not executed', ['1', '2'], 300],
    ['a limit of 0', ['1'], 0],
  ] as const)('is nothing for %s', async (_what, ids, most) => {
    const run = start(ids, (port, id) => void (most === 0 && port.noteExecution(id)), most)
    expect(await settlesAfter(run)).toBe(15)
    expect(told(run)).toEqual([])
  })

  test('of a thousand short calls is reported in few frames', async () => {
    const ids = Array.from({ length: 1000 }, (_, n) => String(n))
    const run = start(ids, (port, id) => {
      const noteEnd = port.noteExecution(id)
      vi.setSystemTime(0)
      vi.advanceTimersByTime(5)
      noteEnd()
    })
    await vi.advanceTimersByTimeAsync(0)
    await vi.advanceTimersByTimeAsync(20_000)
    expect(run.settled()).toBe(true)
    expect(told(run)).toHaveLength(50)
  })
})
