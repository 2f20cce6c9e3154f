import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type ExecutionMode, ScriptExecutor } from '../../../src/executor/index.ts'
import { replayChannel, wireLines } from '../../../src/testing/index.ts'

/* The acceptance cases of the script executor, unchanged from the original assignment. */

interface MissionCase {
  readonly name: string
  readonly mode?: string
  readonly execution_id?: string
  readonly stdout?: readonly unknown[]
  readonly stdout_raw?: readonly string[]
  readonly expected?: Readonly<Record<string, unknown>>
}

const { cases } = JSON.parse(readFileSync(join(import.meta.dirname, '../../data/mission-cases.json'), 'utf8')) as {
  cases: readonly MissionCase[]
}
const findCase = (name: string): MissionCase => {
  const found = cases.find((row) => row.name === name)
  if (found === undefined) throw new Error(`no case ${name}`)
  return found
}

afterEach(() => {
  vi.useRealTimers()
})

describe('rows with a recorded stream', () => {
  const replayed = ['plan success', 'logs collected', 'INTERACTIVE final', 'non-JSON lines skipped']

  // EX-05, EX-11
  test.each(replayed)('%s', async (name) => {
    const { mode = 'PLAN', execution_id: executionId = 'e1', stdout = [], stdout_raw: raw, expected } = findCase(name)
    const bytes = raw === undefined ? wireLines(...stdout) : Buffer.from(`${raw.join('\n')}\n`)
    const onIntermediate = vi.fn<() => void>()
    const executor = new ScriptExecutor({ mode: mode.toLowerCase() as ExecutionMode, onIntermediate })
    const got = await executor.run({ sandbox: replayChannel(bytes), script: 'pass', executionId })
    const facts = {
      success: got.success,
      final_data: got.finalData,
      intermediates: got.intermediates,
      logs: got.logs,
      callback_calls: onIntermediate.mock.calls.length,
    }
    expect(facts).toMatchObject(expected ?? {})
  })

  // EX-06
  test('PLAN: script_done and nothing else fails at once (improve)', async () => {
    const sandbox = replayChannel(wireLines(...(findCase('PLAN: script_done and nothing else').stdout ?? [])), {
      after: 'open',
    })
    const got = await new ScriptExecutor().run({ sandbox, script: 'pass', executionId: 'e1' })
    expect(got).toMatchObject({
      success: false,
      status: 'failed',
      errorKind: 'error',
      error: 'script finished without calling emit_result()',
    })
  })
})

// EX-08
test('timeout: no answer within executionTimeoutSec + 5 s destroys the sandbox', async () => {
  vi.useFakeTimers()
  const sandbox = replayChannel([], { after: 'open' })
  const executor = new ScriptExecutor({ limits: { executionTimeoutSec: 10 } })
  const settled = vi.fn<() => void>()
  const running = executor.run({ sandbox, script: 'pass', executionId: 'e1' }).finally(settled)
  await vi.advanceTimersByTimeAsync(14_999)
  expect(settled).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(1)
  expect(settled).toHaveBeenCalled()
  expect(await running).toMatchObject({
    success: false,
    status: 'timed-out',
    errorKind: 'timeout',
    error: 'Timed out waiting for container response',
    ending: {
      cause: 'timeout',
      by: 'host',
      exitCode: null,
      signal: null,
    },
  })
  expect(sandbox.destroyed).toBe(true)
  expect(vi.getTimerCount()).toBe(0)
})

// EX-01
test('missing execution id: a unique one is generated, sent and echoed', async () => {
  const ids = await Promise.all(
    [undefined, null].map(async (executionId) => {
      const sandbox = replayChannel([])
      const request = { sandbox, script: 'pass', executionId } as { sandbox: typeof sandbox; script: string }
      const { executionId: echoed } = await new ScriptExecutor().run(request)
      expect(sandbox.sent).toMatchObject([{ type: 'execute', execution_id: echoed }])
      return echoed
    }),
  )
  expect(new Set(ids).size).toBe(2)
  expect(ids.every((id) => /^[0-9a-f-]{36}$/.test(id))).toBe(true)
})

test('every acceptance case is covered above', () => {
  expect(cases.map(({ name }) => name)).toEqual([
    'plan success',
    'logs collected',
    'PLAN: script_done and nothing else',
    'INTERACTIVE final',
    'non-JSON lines skipped',
    'timeout',
    'missing execution id',
  ])
})
