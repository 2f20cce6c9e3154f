import { describe, expect, test } from 'vitest'
import { done, error, frame, ID, intermediate, log, play, result, sandboxOf } from './wire.ts'
import { ScriptExecutor } from '../../../src/executor/index.ts'

// EX-01, EX-04
test('a run gives the whole outcome', async () => {
  const { result: got, sandbox } = await play([
    frame('stdout', { text: 'out' }),
    intermediate('p', [1]),
    log('hi'),
    frame('stderr', { text: 'err' }),
    result({ ok: true }),
    done(
      {},
      {
        stdout_bytes: 3,
        stderr_bytes: 3,
        limits_hit: ['max_files'],
        warnings: [{ code: 'collect_skipped', message: 'm' }],
      },
    ),
  ])
  const { durationMs, outputBytes, ...rest } = got
  expect(rest).toEqual({
    status: 'completed',
    setupFailed: false,
    success: true,
    errorKind: null,
    executionId: ID,
    hasResult: true,
    finalData: { ok: true },
    intermediates: [{ label: 'p', data: [1] }],
    logs: [{ level: 'info', message: 'hi' }],
    error: null,
    traceback: null,
    warnings: [{ code: 'collect_skipped', message: 'm', traceback: null }],
    stdout: 'out',
    stderr: 'err',
    stdoutBytes: 3,
    stderrBytes: 3,
    truncated: false,
    displays: [],
    ending: { cause: 'exit', exitCode: 0, signal: null, by: 'script' },
    environment: null,
    sandbox: {
      id: 'replay',
      engine: 'replay',
      level: 'none',
      python: '3.11.2',
      use: 3,
      limitsEnforced: [],
      network: 'none',
    },
    ignoredFrames: 0,
    limitsHit: ['max_files'],
    files: [],
    toolCalls: [],
    violations: [],
  })
  expect(durationMs).toBeGreaterThan(0)
  expect(outputBytes).toBe(sizeOf([intermediate('p', [1]), log('hi'), result({ ok: true })]) + 'outerr'.length)
  expect(sandbox.destroyed).toBe(false)
})

describe('the request on the wire', () => {
  // EX-02, EX-03
  test('is one execute frame with the limits, the mode and the content of the request', async () => {
    const { sandbox } = await play([done()], {
      mode: 'plan',
      limits: { executionTimeoutSec: 2.5, maxOutputBytes: 4096, memoryBytes: 256 * 1024 * 1024, pids: 128 },
      request: {
        script: 'emit_result("ü\\n")',
        secrets: { KEY: 'value' },
        requiredSecrets: ['KEY', 'constructor'],
        inputs: { n: 3, deep: { __proto__: null, a: [null, true] } },
        collect: ['out/**'],
      },
    })
    expect(sandbox.sent).toEqual([
      {
        type: 'execute',
        execution_id: ID,
        script: 'emit_result("ü\\n")',
        mode: 'plan',
        timeout_sec: 2.5,
        max_output_bytes: 4096,
        inputs: {
          n: 3,
          deep: { a: [null, true] },
        },
        secrets: { KEY: 'value' },
        required_secrets: ['KEY', 'constructor'],
        collect: ['out/**'],
        limits: { memory_bytes: 256 * 1024 * 1024 },
      },
    ])
  })
})

describe('the ending decides when there is neither result nor error', () => {
  test.each([
    // EX-06
    ['step-done', null, null, done()],
    [
      'crashed',
      'crash',
      "the script's process was killed by SIGSEGV",
      done({ cause: 'signal', exit_code: null, signal: 'SIGSEGV' }),
    ],
    ['crashed', 'crash', "the script's process exited with code 3 without an error", done({ exit_code: 3 })],
    ['timed-out', 'timeout', 'Script timed out after 30s', done({ cause: 'timeout', exit_code: null, by: 'harness' })],
    [
      'output-limit',
      'output_limit',
      'the script sent more than maxOutputBytes (1048576 bytes)',
      done({ cause: 'output-limit', exit_code: null, by: 'harness' }),
    ],
    ['cancelled', 'cancelled', 'the run was cancelled', done({ cause: 'cancelled', exit_code: null, by: 'host' })],
    [
      'sandbox-lost',
      'infrastructure',
      'the harness did not start the script and gave no reason',
      done({ cause: 'not-started' }),
    ],
  ])('%s', async (status, errorKind, message, last) => {
    const { result: got } = await play([log('kept'), last])
    expect(got).toMatchObject({ status, errorKind, error: message, success: false, hasResult: false, finalData: null })
    expect(got.logs).toHaveLength(1)
  })

  test('a kill during which the kernel counted a memory kill is memory-limit', async () => {
    const killed = done({ cause: 'signal', exit_code: null, signal: 'SIGKILL', by: 'unknown' })
    const { result: got, sandbox } = await play([killed], { replay: { memoryKills: 1 } })
    expect(got).toMatchObject({
      status: 'memory-limit',
      errorKind: 'oom',
      ending: {
        cause: 'memory-limit',
        by: 'kernel',
      },
      error: "the script's process was killed: out of memory, the limit is 536870912 bytes",
    })
    // The count grew during the last bytes, and only by the script's own process.
    expect(sandbox.destroyed).toBe(false)
  })

  test('memory kills of further processes end the sandbox', async () => {
    const killed = done({ cause: 'signal', exit_code: null, signal: 'SIGKILL', by: 'kernel' })
    const { sandbox } = await play([killed], { replay: { memoryKills: 2 } })
    expect(sandbox.destroyed).toBe(true)
  })
})

describe('an error frame decides', () => {
  // EX-05
  test.each<[string, string, string, boolean?]>([
    ['exception', 'failed', 'error'],
    ['exit', 'failed', 'error'],
    ['syntax', 'failed', 'error'],
    ['secrets', 'failed', 'error', true],
    ['setup', 'failed', 'error', true],
    ['something new', 'failed', 'error'],
    ['__proto__', 'failed', 'error'],
    ['request', 'failed', 'invalid_request'],
    ['timeout', 'timed-out', 'timeout'],
    ['memory', 'memory-limit', 'oom'],
    ['crash', 'crashed', 'crash'],
    ['cancelled', 'cancelled', 'cancelled'],
  ])('%s is %s', async (kind, status, errorKind, setupFailed = false) => {
    const { result: got, sandbox } = await play([
      error('boom', { kind, traceback: 'Traceback' }),
      done({ cause: 'signal', signal: 'SIGSEGV', exit_code: null }),
    ])
    expect(got).toMatchObject({
      status,
      errorKind,
      setupFailed,
      error: 'boom',
      traceback: 'Traceback',
      warnings: [],
      success: false,
    })
    expect(sandbox.destroyed).toBe(false)
  })

  // EX-10
  test('output_limit names the limit even when the harness does not', async () => {
    const { result: got } = await play([error('too much', { kind: 'output_limit' }), done({ cause: 'output-limit' })])
    expect(got).toMatchObject({
      status: 'output-limit',
      errorKind: 'output_limit',
      error: 'the script sent more than maxOutputBytes (1048576 bytes): too much',
    })
  })
})

describe('a MemoryError', () => {
  const raised = [error('MemoryError', { kind: 'memory', traceback: 'tb' }), done({ exit_code: 1 })]
  const enforced = { limitsEnforced: ['memory'] } as const
  const MiB = 1024 * 1024

  test('is an ordinary exception when the kernel enforces the limit and killed nothing', async () => {
    const { result: got } = await play(raised, { replay: { info: enforced } })
    expect(got).toMatchObject({ status: 'failed', errorKind: 'error', error: 'MemoryError', traceback: 'tb' })
    const late = await play([result(1), ...raised], { replay: { info: enforced } })
    expect(late.result.warnings.map(({ code }) => code)).toEqual(['error_after_result'])
  })

  test.each([
    ['the kernel killed for memory', { replay: { info: enforced, memoryKills: 1 } }],
    ['only the address space is limited', { replay: { info: { limitsEnforced: ['pids'] } } } as const],
    ['the kernel counts nothing', { replay: { info: enforced, memoryKills: null } }],
    ['the run has less memory than its sandbox', { replay: { info: enforced }, limits: { memoryBytes: 100 * MiB } }],
  ])('is memory-limit when %s', async (_name, setup) => {
    const { result: got } = await play(raised, setup)
    expect(got).toMatchObject({ status: 'memory-limit', errorKind: 'oom', error: 'MemoryError', traceback: 'tb' })
    const late = await play([result(1), ...raised], setup)
    expect(late.result.warnings).toEqual([{ code: 'memory_limit', message: 'MemoryError', traceback: 'tb' }])
  })
})

test('a warning with an unknown code is a harness_warning that names the code', async () => {
  const { result: got } = await play([result(1), done({}, { warnings: [{ code: 'new', message: 'm' }] })])
  expect(got).toMatchObject({
    status: 'completed',
    warnings: [{ code: 'harness_warning', message: 'new: m', traceback: null }],
  })
})

test('an end with an unknown or missing cause does not count as clean', async () => {
  for (const cause of ['new', null, 'memory-limit']) {
    const { result: got, sandbox } = await play([done({ cause })])
    expect(got).toMatchObject({ success: false, status: 'sandbox-lost', ending: { cause: 'channel-closed' } })
    expect(sandbox.destroyed).toBe(true)
  }
})

describe('the first of result and error decides (EX-04)', () => {
  test.each([
    ['a second result', [result(2)], ['second_result']],
    ['a late exception', [error('boom', { traceback: 'tb' }), done({ exit_code: 1 })], ['error_after_result']],
    ['a late timeout', [error('late', { kind: 'timeout' }), done({ cause: 'timeout' })], ['timeout']],
    ['os._exit', [error('ended with exit code 3', { kind: 'crash' }), done({ exit_code: 3 })], ['crash']],
    ['a timeout without an error', [done({ cause: 'timeout' })], ['timeout']],
    ['a crash', [done({ cause: 'signal', signal: 'SIGSEGV', exit_code: null })], ['crash']],
    ['too much output', [done({ cause: 'output-limit' })], ['output_limit']],
    ['a cancellation', [done({ cause: 'cancelled' })], ['cancelled']],
    [
      'a late exception and then a crash',
      [error('boom'), done({ cause: 'signal', signal: 'SIGSEGV', exit_code: null })],
      ['error_after_result', 'crash'],
    ],
    [
      'a late exception and then os._exit',
      [error('boom'), error('ended with exit code 3', { kind: 'crash' }), done({ exit_code: 3 })],
      ['error_after_result', 'crash'],
    ],
    ['a late sys.exit', [error('SystemExit: 3', { kind: 'exit' }), done({ exit_code: 3 })], ['error_after_result']],
    [
      'an exception and a timeout',
      [error('boom'), error('late', { kind: 'timeout' }), done({ cause: 'timeout', exit_code: 1 })],
      ['error_after_result', 'timeout'],
    ],
    [
      'a timeout and too much output',
      [error('late', { kind: 'timeout' }), error('much', { kind: 'output_limit' }), done({ exit_code: 1 })],
      ['timeout', 'output_limit'],
    ],
  ])('after a result, %s is a warning', async (_name, later, codes) => {
    const { result: got } = await play([result(1), ...later, done()])
    expect(got).toMatchObject({ status: 'completed', success: true, finalData: 1, error: null, traceback: null })
    expect(got.warnings.map(({ code }) => code)).toEqual(codes)
  })

  test('a late exception keeps its message and traceback', async () => {
    const { result: got } = await play([result(1), error('boom', { traceback: 'tb' }), done()])
    expect(got.warnings).toEqual([{ code: 'error_after_result', message: 'boom', traceback: 'tb' }])
  })

  test('a result after an error is a warning', async () => {
    const { result: got } = await play([error('boom'), result({ pwned: true }), done()])
    expect(got).toMatchObject({ status: 'failed', success: false, hasResult: false, finalData: null, error: 'boom' })
    expect(got.warnings.map(({ code }) => code)).toEqual(['result_after_error'])
  })

  test('null is a result', async () => {
    const { result: got } = await play([result(null), done()])
    expect(got).toMatchObject({ status: 'completed', success: true, hasResult: true, finalData: null })
  })
})

describe('frames of another run', () => {
  // EX-07
  test('another execution id is ignored and counted, never delivered', async () => {
    const events: unknown[] = []
    const foreign = { type: 'log', execution_id: 'e0', message: 'old' }
    const { result: got } = await play(
      [
        foreign,
        { type: 'final_result', execution_id: 'e0', data: 0 },
        { type: 'script_done', execution_id: 'e0' },
        result(1),
        done(),
      ],
      { onEvent: (event) => events.push(event) },
    )
    expect(got).toMatchObject({ finalData: 1, ignoredFrames: 3, logs: [] })
    expect(JSON.stringify(events)).not.toContain('e0')
  })

  // EX-11
  test('unknown types, other JSON, junk and unexpected frames are ignored and counted; blank lines are not', async () => {
    const { result: got } = await play([
      Buffer.from('hello\n\n  \r\n'),
      frame('tool_call'),
      5,
      null,
      [],
      { type: 'pong', nonce: ID },
      { type: 'ready' },
      { type: 'log', message: 'no id' },
      done(),
    ])
    expect(got).toMatchObject({ status: 'step-done', ignoredFrames: 8 })
  })
})

describe('the reuse of the sandbox', () => {
  test('after a failed run it stays alive and serves the next run', async () => {
    const second = Buffer.from(
      `${JSON.stringify({ type: 'script_done', execution_id: 'e2', reusable: true, use: 4 })}\n`,
    )
    const sandbox = sandboxOf([error('boom'), done()], {
      after: 'open',
      respond: (sent) => (sent.type === 'execute' && sent.execution_id === 'e2' ? second : undefined),
    })
    const executor = new ScriptExecutor({ mode: 'interactive' })
    const first = await executor.run({ sandbox, script: 'x', executionId: ID })
    const next = await executor.run({ sandbox, script: 'y', executionId: 'e2' })
    expect([first.status, next.status, next.sandbox.use, sandbox.destroyed]).toEqual(['failed', 'step-done', 4, false])
  })

  test.each([
    ['the harness says it does not', [done({}, { reusable: false })]],
    ['the harness does not say that it does', [frame('script_done')]],
    ['bytes follow script_done', [Buffer.concat([lines(done()), lines(log('still running'))])]],
    ['half a line follows script_done', [Buffer.concat([lines(done()), Buffer.from('{')])]],
  ])('it is destroyed when %s', async (_name, frames) => {
    const { sandbox } = await play(frames, { replay: { after: 'open' } })
    expect(sandbox.destroyed).toBe(true)
  })

  test('a second run at the same time is refused, from another executor too', async () => {
    const cancelled = lines(done({ cause: 'cancelled', by: 'host' }))
    const sandbox = sandboxOf([], { after: 'open', respond: ({ type }) => (type === 'cancel' ? cancelled : undefined) })
    const abort = new AbortController()
    const first = new ScriptExecutor().run({ sandbox, script: 'x', executionId: ID, signal: abort.signal })
    await expect(new ScriptExecutor().run({ sandbox, script: 'y' })).rejects.toMatchObject({ code: 'sandbox_busy' })
    abort.abort()
    expect(await first).toMatchObject({ status: 'cancelled' })
    expect(sandbox.destroyed).toBe(false)
  })
})

function lines(...values: readonly unknown[]): Buffer {
  return Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(''))
}

function sizeOf(values: readonly unknown[]): number {
  return lines(...values).length
}
