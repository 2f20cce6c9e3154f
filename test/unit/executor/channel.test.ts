import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Channel, Ending } from '../../../src/sandbox/index.ts'
import { ScriptExecutor } from '../../../src/executor/index.ts'
import { replayChannel, wireLines } from '../../../src/testing/index.ts'
import { done, error, frame, ID, log, play, result } from './wire.ts'

afterEach(() => {
  vi.useRealTimers()
})

const killed: Ending = { cause: 'signal', exitCode: null, signal: 'SIGKILL', by: 'unknown' }

// EX-09
describe('a channel that closes before the run ended', () => {
  test.each([
    [killed, 'Container stdout closed unexpectedly: killed by SIGKILL'],
    [{ ...killed, cause: 'exit', exitCode: 7, signal: null }, 'Container stdout closed unexpectedly: exit code 7'],
    [{ ...killed, message: 'no more' }, 'Container stdout closed unexpectedly: killed by SIGKILL; it said: no more'],
  ] as const)('names the cause %#', async (ending, message) => {
    const { result: got, sandbox } = await play([log('kept')], { replay: { ending } })
    expect(got).toMatchObject({ status: 'sandbox-lost', errorKind: 'infrastructure', error: message, success: false })
    expect(got.ending).toEqual({ ...ending, cause: 'channel-closed' })
    expect([got.logs.length, sandbox.destroyed]).toEqual([1, true])
  })

  test('is memory-limit when the kernel killed for memory', async () => {
    const { result: got } = await play([], { replay: { ending: killed, memoryKills: 1 } })
    expect(got).toMatchObject({
      status: 'memory-limit',
      errorKind: 'oom',
      ending: {
        cause: 'memory-limit',
        signal: 'SIGKILL',
        by: 'kernel',
      },
      error: 'Container stdout closed unexpectedly: out of memory, the limit is 536870912 bytes',
    })
  })

  test('settles within 2 s when the sandbox does not report its end', async () => {
    vi.useFakeTimers()
    const running = play([], { replay: { ending: 'never', memoryKills: null } })
    await vi.advanceTimersByTimeAsync(2000)
    expect((await running).result).toMatchObject({
      status: 'sandbox-lost',
      error: 'Container stdout closed unexpectedly',
      ending: {
        cause: 'channel-closed',
        exitCode: null,
        signal: null,
        by: 'unknown',
      },
    })
    expect(vi.getTimerCount()).toBe(0)
  })

  // EX-05
  test('after a result is completed with a warning, after an error is failed', async () => {
    const good = await play([result(1)], { replay: { ending: killed } })
    expect(good.result).toMatchObject({ status: 'completed', success: true, finalData: 1, error: null })
    expect(good.result.warnings.map(({ code }) => code)).toEqual(['channel_closed'])
    const bad = await play([error('boom')], { replay: { ending: killed } })
    expect(bad.result).toMatchObject({ status: 'failed', error: 'boom', warnings: [{ code: 'channel_closed' }] })
    expect([good.sandbox.destroyed, bad.sandbox.destroyed]).toEqual([true, true])
  })

  test('a channel whose receive rejects is closed', async () => {
    const sandbox = replayChannel([])
    sandbox.channel.receive = () => Promise.reject(new Error('ECONNRESET'))
    const running = new ScriptExecutor().run({ sandbox, script: 'x' })
    await sandbox.destroy()
    expect(await running).toMatchObject({ status: 'sandbox-lost' })
  })
})

describe('sending', () => {
  test('gives up after 2 s on a peer that neither reads nor answers', async () => {
    vi.useFakeTimers()
    const running = play([], { replay: { send: 'reject', after: 'open' } })
    await vi.advanceTimersByTimeAsync(4000)
    const { result: got, sandbox } = await running
    expect([got.status, sandbox.destroyed]).toEqual(['sandbox-lost', true])
  })

  test('keeps the data that a peer sent before it closed', async () => {
    const { result: got } = await play([error('bad request', { kind: 'request' })], {
      replay: { send: 'reject', start: 'at-once', ending: killed },
    })
    expect(got).toMatchObject({ status: 'failed', errorKind: 'invalid_request', error: 'bad request' })
  })

  // EX-08
  test('a peer that never reads does not outlive the backstop', async () => {
    vi.useFakeTimers()
    const running = play([], { replay: { send: 'block', after: 'open' }, limits: { executionTimeoutSec: 1 } })
    await vi.advanceTimersByTimeAsync(6000)
    const { result: got, sandbox } = await running
    expect([got.status, sandbox.destroyed]).toEqual(['timed-out', true])
  })

  test('files go first, in pieces, an empty one too; then execute', async () => {
    const chunk = 192 * 1024
    const big = Buffer.alloc(chunk + 5, 7)
    const { sandbox } = await play([done()], {
      request: { files: { 'work/big': big, empty: '', 'run.sh': { content: 'ü', mode: 0o755 } } },
    })
    const base64 = (bytes: Uint8Array | string): string => Buffer.from(bytes).toString('base64')
    const put = (path: string, offset: number, content: Uint8Array | string, mode = 0o644): object => ({
      type: 'file_put',
      execution_id: ID,
      path,
      mode,
      offset,
      content_base64: base64(content),
    })
    expect(sandbox.sent.slice(0, -1)).toEqual([
      put('work/big', 0, big.subarray(0, chunk)),
      put('work/big', chunk, big.subarray(chunk)),
      put('empty', 0, ''),
      put('run.sh', 0, 'ü', 0o755),
    ])
    expect(sandbox.sent.at(-1)?.type).toBe('execute')
  })

  test('a harness that ends the run during the upload gets no execute, and is destroyed', async () => {
    const sandbox = replayChannel(wireLines(error('no space', { kind: 'request' }), done({ cause: 'not-started' })), {
      start: 'at-once',
    })
    const got = await new ScriptExecutor().run({
      sandbox,
      script: 'x',
      executionId: ID,
      files: { a: Buffer.alloc(4 * 1024 * 1024) },
    })
    expect(got).toMatchObject({ status: 'failed', errorKind: 'invalid_request', error: 'no space' })
    expect(sandbox.sent.some(({ type }) => type === 'execute')).toBe(false)
    expect(sandbox.destroyed).toBe(true)
  })
})

describe('cancelling by signal', () => {
  const reason = done({ cause: 'cancelled', exit_code: null, by: 'host' })

  test('asks the harness, keeps the received events and leaves the sandbox alive when the harness confirms', async () => {
    const abort = new AbortController()
    const { result: got, sandbox } = await play([log('first')], {
      replay: {
        after: 'open',
        respond: ({ type }) =>
          type === 'cancel' ? wireLines(error('cancelled', { kind: 'cancelled' }), reason) : undefined,
      },
      request: { signal: abort.signal },
      onLog: () => abort.abort(),
    })
    expect(got).toMatchObject({
      status: 'cancelled',
      errorKind: 'cancelled',
      error: 'cancelled',
      success: false,
      ending: {
        cause: 'cancelled',
        by: 'host',
      },
      logs: [{ message: 'first' }],
    })
    expect(sandbox.sent.map(({ type }) => type)).toEqual(['execute', 'cancel'])
    expect(sandbox.destroyed).toBe(false)
  })

  test('destroys a sandbox that does not confirm within 2 s', async () => {
    vi.useFakeTimers()
    const abort = new AbortController()
    const running = play([log('first')], {
      replay: { after: 'open' },
      request: { signal: abort.signal },
      onLog: () => abort.abort(),
    })
    await vi.advanceTimersByTimeAsync(2000)
    const { result: got, sandbox } = await running
    expect(got).toMatchObject({
      status: 'cancelled',
      errorKind: 'cancelled',
      ending: { cause: 'cancelled', by: 'host' },
    })
    expect([got.logs.length, sandbox.destroyed]).toEqual([1, true])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('before the start runs nothing, reports nothing and leaves the sandbox alone', async () => {
    const onEvent = vi.fn<(event: unknown) => void>()
    const { result: got, sandbox } = await play([done()], { request: { signal: AbortSignal.abort() }, onEvent })
    expect(got).toMatchObject({
      status: 'cancelled',
      errorKind: 'cancelled',
      ending: { cause: 'cancelled', by: 'host' },
    })
    expect([sandbox.sent, sandbox.destroyed, onEvent.mock.calls]).toEqual([[], false, []])
  })

  test('after a result leaves the result', async () => {
    const abort = new AbortController()
    const { result: got } = await play([result(1), log('x')], {
      replay: { after: 'open', respond: ({ type }) => (type === 'cancel' ? wireLines(reason) : undefined) },
      request: { signal: abort.signal },
      onLog: () => abort.abort(),
    })
    expect(got).toMatchObject({ status: 'completed', finalData: 1, warnings: [{ code: 'cancelled' }] })
  })

  test('before execute was sent destroys the half-filled sandbox', async () => {
    const abort = new AbortController()
    const { result: got, sandbox } = await play([], {
      replay: { after: 'open', respond: () => (abort.abort(), undefined) },
      request: { signal: abort.signal, files: { a: 'x', b: 'y' } },
    })
    expect([got.status, sandbox.sent.length, sandbox.destroyed]).toEqual(['cancelled', 1, true])
  })

  test('leaves no listener behind', async () => {
    const { signal } = new AbortController()
    const removed = vi.spyOn(signal, 'removeEventListener')
    const added = vi.spyOn(signal, 'addEventListener')
    await play([done()], { request: { signal } })
    expect(removed.mock.calls.length).toBe(added.mock.calls.length)
  })
})

describe('destroying', () => {
  test('is awaited for a limited time', async () => {
    vi.useFakeTimers()
    const sandbox = replayChannel(wireLines(frame('script_done')))
    sandbox.destroy = () => Promise.withResolvers<void>().promise
    const running = new ScriptExecutor({ mode: 'interactive' }).run({ sandbox, script: 'x', executionId: ID })
    await vi.advanceTimersByTimeAsync(2000)
    expect(await running).toMatchObject({ status: 'step-done', warnings: [{ code: 'destroy_failed' }] })
  })

  test('that fails is a warning', async () => {
    const sandbox = replayChannel(wireLines(frame('script_done')))
    sandbox.destroy = () => Promise.reject(new Error('stuck'))
    const got = await new ScriptExecutor({ mode: 'interactive' }).run({ sandbox, script: 'x', executionId: ID })
    expect(got.warnings).toEqual([
      { code: 'destroy_failed', message: 'the sandbox could not be destroyed: stuck', traceback: null },
    ])
  })
})

describe('a channel that takes chunks back', () => {
  test.each([1, 7, 64, 100_000])(
    'gets each, and nothing of it is read afterwards: in pieces of %i bytes',
    async (size) => {
      const lines = Buffer.from(
        wireLines(log('ä'.repeat(500)), frame('stdout', { text: 'out' }), result([1, 'two']), done()),
      )
      const pieces = Array.from({ length: Math.ceil(lines.length / size) }, (_, index) =>
        Uint8Array.from(lines.subarray(index * size, (index + 1) * size)),
      )
      const sandbox = replayChannel(pieces)
      const { channel: inner } = sandbox
      let lent: Uint8Array | null = null
      let released = 0
      const channel: Channel = {
        receive: async () => (lent = await inner.receive()),
        release() {
          lent?.fill(0)
          released += 1
        },
        send: (bytes) => inner.send(bytes),
        close: () => inner.close(),
      }
      Object.defineProperty(sandbox, 'channel', { value: channel })
      const executor = new ScriptExecutor({ mode: 'interactive' })
      const got = await executor.run({ sandbox, script: 'pass', executionId: ID })
      expect(got).toMatchObject({ status: 'completed', finalData: [1, 'two'], stdout: 'out' })
      expect(got.logs).toMatchObject([{ message: 'ä'.repeat(500) }])
      expect(released).toBe(pieces.length)
    },
  )
})
