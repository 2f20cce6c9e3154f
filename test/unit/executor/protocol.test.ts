import { describe, expect, test } from 'vitest'
import { ScriptExecutor } from '../../../src/executor/index.ts'
import { replayChannel, wireLines } from '../../../src/testing/index.ts'
import { done, ID, play } from './wire.ts'

/* The wire cases of the group `protocol` of the acceptance cases, by their ids. */

const finalOk = { type: 'final_result', execution_id: ID, data: { ok: 1 } }

test('PRO-005: a result without an execution id is ignored', async () => {
  const { result } = await play([{ type: 'final_result', data: { pwned: true } }, finalOk], { mode: 'plan' })
  expect(result).toMatchObject({ success: true, finalData: { ok: 1 }, ignoredFrames: 1 })
})

test.each(['in one chunk', 'in chunks'])(
  'PRO-007: a forged script_done %s fails the run and the sandbox does not serve again',
  async (how) => {
    const events = [
      { type: 'script_done', execution_id: ID },
      { type: 'log', execution_id: ID, message: 'still running' },
      finalOk,
    ]
    const frames = how === 'in chunks' ? events : [wireLines(...events)]
    const { result, sandbox } = await play(frames, { mode: 'plan', replay: { after: 'open' } })
    expect(result).toMatchObject({ status: 'failed', error: 'script finished without calling emit_result()' })
    expect(sandbox.destroyed).toBe(true)
  },
)

test('PRO-013: the last of duplicate keys wins', async () => {
  const line = `{"type":"log","type":"final_result","execution_id":"x","execution_id":"${ID}","data":{"pwned":true},"data":{"ok":1}}\n`
  const { result } = await play([Buffer.from(line)], { mode: 'plan' })
  expect(result.finalData).toEqual({ ok: 1 })
})

test('PRO-014: an event may be split at every byte', async () => {
  const bytes = Buffer.from(`{"type":"final_result","execution_id":"${ID}","data":{"t":"ü漢🎉"}}\n`)
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const { result } = await play([bytes.subarray(0, cut), bytes.subarray(cut)], { mode: 'plan' })
    expect(result).toMatchObject({ success: true, finalData: { t: 'ü漢🎉' } })
  }
})

test('PRO-015: two events and half of a third in one chunk', async () => {
  const log = (message: string): string => `{"type":"log","execution_id":"${ID}","message":"${message}"}\n`
  const { result } = await play([Buffer.from(`${log('a')}${log('b')}{"type":"final_re`)], { mode: 'plan' })
  expect(result.logs.map(({ message }) => message)).toEqual(['a', 'b'])
  expect(result).toMatchObject({ success: false, status: 'sandbox-lost', ignoredFrames: 1 })
  expect(result.error).toContain('stdout closed unexpectedly')
})

test('PRO-016: blank lines, CRLF, leading spaces and a byte order mark', async () => {
  const text = `\uFEFF\r\n\n   \n  {"type":"final_result","execution_id":"${ID}","data":1}\r\n`
  const { result } = await play([Buffer.from(text)], { mode: 'plan' })
  expect(result).toMatchObject({ success: true, finalData: 1, ignoredFrames: 0 })
})

// EX-10
test('PRO-037: a line of 64 MiB that never ends is an output limit and uses little memory', async () => {
  const chunk = Buffer.alloc(64 * 1024, '{')
  let peak = 0
  // Of this thread: the process has others, whose tests take memory as well.
  const used = (): number => {
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const before = used()
  const chunks = function* (): Generator<Uint8Array, void, void> {
    for (let sent = 0; sent < 1024; sent += 1) {
      peak = Math.max(peak, used() - before)
      yield Buffer.from(chunk)
    }
  }
  const sandbox = replayChannel(chunks())
  const result = await new ScriptExecutor().run({ sandbox, script: 'x', executionId: ID })
  expect(result).toMatchObject({
    success: false,
    status: 'output-limit',
    errorKind: 'output_limit',
    error: 'the script sent more than maxOutputBytes (1048576 bytes)',
    ending: {
      cause: 'output-limit',
      by: 'host',
    },
  })
  // A display may take 4 MiB.
  expect(result.outputBytes).toBeLessThan(5 * 1024 * 1024)
  expect(sandbox.received).toBeLessThan(80)
  expect(sandbox.destroyed).toBe(true)
  expect(peak).toBeLessThan(64 * 1024 * 1024)
})

test('PRO-039: an error and then a result is a failure', async () => {
  const { result } = await play(
    [
      { type: 'error', execution_id: ID, message: 'boom' },
      { type: 'final_result', execution_id: ID, data: { pwned: true } },
    ],
    { mode: 'plan' },
  )
  expect(result).toMatchObject({ success: false, status: 'failed', error: 'boom', finalData: null })
})

describe('PRO-041: an execution id from the caller', () => {
  test.each(['', ' ', 'a\nb', 'x'.repeat(100_000), '\0', { id: 1 }, 5, '\u0085', '\ud800', false])(
    '%j is refused before anything is sent',
    async (executionId) => {
      const sandbox = replayChannel([])
      const request = { sandbox, script: 'x', executionId: executionId as string }
      await expect(new ScriptExecutor().run(request)).rejects.toMatchObject({
        code: 'invalid_request',
        message: expect.stringMatching(/^executionId: .{5,200}$/) as string,
      })
      expect(sandbox.sent).toEqual([])
    },
  )

  test.each(['__proto__', 'constructor', '../../x', 'a"b', 'ü 漢🎉', 'x'.repeat(256)])(
    '%j is opaque text',
    async (executionId) => {
      const sandbox = replayChannel(
        wireLines({ ...finalOk, execution_id: executionId }, { ...done(), execution_id: executionId }),
      )
      const result = await new ScriptExecutor().run({ sandbox, script: 'x', executionId })
      expect(result).toMatchObject({ success: true, executionId, finalData: { ok: 1 } })
    },
  )
})

test('PRO-042: the same id twice at once, each run gets its own result', async () => {
  const executor = new ScriptExecutor()
  const runs = ['a', 'b'].map((tag) => {
    const sandbox = replayChannel(
      wireLines({ type: 'final_result', execution_id: 'dup', data: tag }, { ...done(), execution_id: 'dup' }),
    )
    return executor.run({ sandbox, script: tag, executionId: 'dup' })
  })
  expect((await Promise.all(runs)).map(({ finalData }) => finalData)).toEqual(['a', 'b'])
})

test('a result with keys like __proto__ is data, with and without secrets, and pollutes nothing', async () => {
  const text = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"ok":1}'
  const line = Buffer.from(`{"type":"final_result","execution_id":"${ID}","data":${text}}\n`)
  for (const secrets of [{}, { KEY: 'polluted-not' }]) {
    const { result } = await play([line, done()], { request: { secrets } })
    expect(JSON.stringify(result.finalData)).toBe(text)
    expect(Object.getPrototypeOf(result.finalData)).toBe(Object.prototype)
  }
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
})
