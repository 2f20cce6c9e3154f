import { afterEach, describe, expect, test, vi } from 'vitest'
import { SandglassError } from '../../../src/errors/index.ts'
import { ScriptExecutor } from '../../../src/executor/index.ts'
import { type ReplaySandbox, type ReplayOptions, wireLines } from '../../../src/testing/index.ts'
import { done, ID, log, result, sandboxOf } from './wire.ts'

afterEach(() => vi.useRealTimers())

/** A replayed sandbox with a CPU limit, and a log of changes of the limit and of sent frames, in order. */
function makeLimitedSandbox(
  frames: readonly unknown[],
  options: ReplayOptions & { readonly onLift?: () => void; readonly onPutBack?: () => void | Promise<void> } = {},
): { sandbox: ReplaySandbox; order: string[] } {
  const { onLift, onPutBack, ...replay } = options
  const order: string[] = []
  const sandbox = sandboxOf(frames, {
    ...replay,
    respond: (frame) => {
      order.push(frame.type)
      return replay.respond?.(frame)
    },
  })
  sandbox.liftCpuLimit = () => {
    order.push('lifted')
    onLift?.()
    return {
      async [Symbol.asyncDispose]() {
        order.push('put back')
        await onPutBack?.()
      },
    }
  }
  return { sandbox, order }
}

const executor = (executionTimeoutSec = 30): ScriptExecutor =>
  new ScriptExecutor({ mode: 'interactive', limits: { executionTimeoutSec } })
const request = { script: 'x', executionId: ID }
const cancelled = wireLines(done({ cause: 'cancelled', exit_code: null, by: 'host' }))

describe('the CPU limit of a sandbox', () => {
  test('stays unchanged while a run settles in time', async () => {
    vi.useFakeTimers()
    const { sandbox, order } = makeLimitedSandbox([result(1), done()])
    expect(await executor(0.001).run({ ...request, sandbox })).toMatchObject({ status: 'completed' })
    await vi.advanceTimersByTimeAsync(10_000)
    expect([order, vi.getTimerCount()]).toEqual([['execute'], 0])
  })

  test('is lowered for a run that asks for less, and restored before the run settles', async () => {
    const { sandbox, order } = makeLimitedSandbox([result(1), done()])
    sandbox.lowerCpuLimit = async (cpus) => {
      order.push(`${cpus} CPUs`)
      return { [Symbol.asyncDispose]: async () => void order.push('restored') }
    }
    const lesser = new ScriptExecutor({ limits: { cpus: 0.25 } })
    expect(await lesser.run({ ...request, sandbox })).toMatchObject({ status: 'completed', warnings: [] })
    expect(order).toEqual(['0.25 CPUs', 'execute', 'restored'])
  })

  test('an abort while it is lowered cancels the run before its start', async () => {
    const stop = new AbortController()
    const { sandbox, order } = makeLimitedSandbox([])
    sandbox.lowerCpuLimit = async () => {
      stop.abort()
      await Promise.resolve()
      return { [Symbol.asyncDispose]: async () => void order.push('restored') }
    }
    const lesser = new ScriptExecutor({ limits: { cpus: 0.25 } })
    expect(await lesser.run({ ...request, sandbox, signal: stop.signal })).toMatchObject({ status: 'cancelled' })
    expect(order).toEqual(['restored'])
  })

  test('that cannot be lowered refuses the run, and one that is not restored destroys the sandbox', async () => {
    const lesser = new ScriptExecutor({ limits: { cpus: 0.25 } })
    const broken = makeLimitedSandbox([result(1), done()])
    broken.sandbox.lowerCpuLimit = () => Promise.reject(new Error('EIO'))
    await expect(lesser.run({ ...request, sandbox: broken.sandbox })).rejects.toMatchObject({
      code: 'limit_not_enforceable',
      message: 'limits.cpus: 0.25 could not be set: EIO',
    })
    expect([broken.order, broken.sandbox.destroyed]).toEqual([[], true])
    const deaf = makeLimitedSandbox([])
    deaf.sandbox.lowerCpuLimit = () => Promise.reject(new SandglassError('docker_unreachable', 'no daemon'))
    await expect(lesser.run({ ...request, sandbox: deaf.sandbox })).rejects.toMatchObject({
      code: 'limit_not_enforceable',
      message: 'limits.cpus: 0.25 could not be set: no daemon',
    })
    const stuck = makeLimitedSandbox([result(1), done()])
    stuck.sandbox.lowerCpuLimit = async () => ({ [Symbol.asyncDispose]: () => Promise.reject(new Error('EIO')) })
    const ended = await lesser.run({ ...request, sandbox: stuck.sandbox })
    expect(ended.warnings.map(({ code }) => code)).toEqual(['cpu_limit_lost'])
    expect(stuck.sandbox.destroyed).toBe(true)
  })

  test('is lifted 300 ms after the timeout, and restored before the run settles', async () => {
    vi.useFakeTimers()
    const abort = new AbortController()
    const { sandbox, order } = makeLimitedSandbox([log('up')], {
      after: 'open',
      // Simulates the harness, which finishes now: the replayed one only answers frames.
      onLift: () => queueMicrotask(() => abort.abort()),
      respond: ({ type }) => (type === 'cancel' ? cancelled : undefined),
    })
    const running = executor(2).run({ ...request, sandbox, signal: abort.signal })
    await vi.advanceTimersByTimeAsync(2299)
    expect(order).toEqual(['execute'])
    await vi.advanceTimersByTimeAsync(1)
    expect(order.slice(0, 2)).toEqual(['execute', 'lifted'])
    expect(await running).toMatchObject({ status: 'cancelled' })
    expect([order, sandbox.destroyed]).toEqual([['execute', 'lifted', 'cancel', 'put back'], false])
  })

  test('counts from the moment when the script was sent, not from the first file', async () => {
    vi.useFakeTimers()
    const { sandbox, order } = makeLimitedSandbox([], { after: 'open' })
    const send = sandbox.channel.send.bind(sandbox.channel)
    sandbox.channel.send = async (bytes) => {
      await new Promise((resolve) => {
        setTimeout(resolve, 1000)
      })
      await send(bytes)
    }
    const running = executor(2).run({ ...request, sandbox, files: { a: 'x' } })
    await vi.advanceTimersByTimeAsync(4299)
    expect(order).toEqual(['file_put', 'execute'])
    await vi.advanceTimersByTimeAsync(1)
    expect(order).toEqual(['file_put', 'execute', 'lifted'])
    await vi.advanceTimersByTimeAsync(5000)
    expect(await running).toMatchObject({ status: 'timed-out' })
  })

  test('is lifted at once when a run is cancelled', async () => {
    const abort = new AbortController()
    const { sandbox, order } = makeLimitedSandbox([log('up')], {
      after: 'open',
      respond: ({ type }) => (type === 'cancel' ? cancelled : undefined),
    })
    const running = new ScriptExecutor({ mode: 'interactive', onLog: () => abort.abort() })
    expect(await running.run({ ...request, sandbox, signal: abort.signal })).toMatchObject({ status: 'cancelled' })
    expect(order).toEqual(['execute', 'lifted', 'cancel', 'put back'])
  })

  test('stays lifted for a sandbox that must not serve again', async () => {
    vi.useFakeTimers()
    const { sandbox, order } = makeLimitedSandbox([log('up')], { after: 'open' })
    const running = executor(1).run({ ...request, sandbox })
    await vi.advanceTimersByTimeAsync(6000)
    expect(await running).toMatchObject({ status: 'timed-out', warnings: [] })
    expect([order, sandbox.destroyed, vi.getTimerCount()]).toEqual([['execute', 'lifted'], true, 0])
  })

  test('that cannot be restored destroys the sandbox, with a warning', async () => {
    const abort = new AbortController()
    const { sandbox } = makeLimitedSandbox([log('up')], {
      after: 'open',
      onPutBack: () => {
        throw new Error('read-only file system')
      },
      respond: ({ type }) => (type === 'cancel' ? cancelled : undefined),
    })
    const running = new ScriptExecutor({ mode: 'interactive', onLog: () => abort.abort() })
    const got = await running.run({ ...request, sandbox, signal: abort.signal })
    expect([got.warnings, sandbox.destroyed]).toEqual([
      [
        {
          code: 'cpu_limit_lost',
          message: 'the CPU limit of the sandbox could not be restored: read-only file system',
          traceback: null,
        },
      ],
      true,
    ])
  })

  test('that takes too long to restore destroys the sandbox as well', async () => {
    vi.useFakeTimers()
    const abort = new AbortController()
    const { sandbox } = makeLimitedSandbox([log('up')], {
      after: 'open',
      onPutBack: () => Promise.withResolvers<void>().promise,
      respond: ({ type }) => (type === 'cancel' ? cancelled : undefined),
    })
    const running = new ScriptExecutor({ mode: 'interactive', onLog: () => abort.abort() })
    const result = running.run({ ...request, sandbox, signal: abort.signal })
    await vi.advanceTimersByTimeAsync(500)
    expect([(await result).warnings.map(({ code }) => code), sandbox.destroyed]).toEqual([['cpu_limit_lost'], true])
  })

  test('that cannot be lifted changes nothing', async () => {
    const abort = new AbortController()
    const { sandbox, order } = makeLimitedSandbox([log('up')], {
      after: 'open',
      onLift: () => {
        throw new Error('no')
      },
      respond: ({ type }) => (type === 'cancel' ? cancelled : undefined),
    })
    const running = new ScriptExecutor({ mode: 'interactive', onLog: () => abort.abort() })
    const got = await running.run({ ...request, sandbox, signal: abort.signal })
    expect([got.status, got.warnings, order, sandbox.destroyed]).toEqual([
      'cancelled',
      [],
      ['execute', 'lifted', 'cancel'],
      false,
    ])
  })
})
