import { describe, expect, test } from 'vitest'
import type { ResourceLimits } from '../../../src/sandbox/index.ts'
import { ScriptExecutor } from '../../../src/executor/index.ts'
import { sandboxOf, done, error, frame, ID, log, play, result } from './wire.ts'

const MiB = 1024 * 1024

describe('limits at construction (EX-03)', () => {
  test.each([
    [{ executionTimeoutSec: 0 }, 'limits.executionTimeoutSec'],
    [{ executionTimeoutSec: -1 }, 'limits.executionTimeoutSec'],
    [{ executionTimeoutSec: Number.NaN }, 'limits.executionTimeoutSec'],
    [{ executionTimeoutSec: 1e308 }, 'limits.executionTimeoutSec'],
    [{ executionTimeoutSec: '5' }, 'limits.executionTimeoutSec'],
    [{ maxOutputBytes: 0 }, 'limits.maxOutputBytes'],
    [{ memoryBytes: 1 }, 'limits.memoryBytes'],
    [{ pids: 1.5 }, 'limits.pids'],
    [{ cpus: 0 }, 'limits.cpus'],
    [{ diskBytes: -1 }, 'limits.diskBytes'],
  ])('%j is refused', (limits, named) => {
    expect(() => new ScriptExecutor({ limits: limits as ResourceLimits })).toThrow(
      expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(named) as string }),
    )
  })

  test('a limit that does not exist and a mode that does not exist are refused', () => {
    expect(() => new ScriptExecutor({ limits: { timeout: 5 } as ResourceLimits })).toThrow(TypeError)
    expect(() => new ScriptExecutor({ mode: 'PLAN' as 'plan' })).toThrow(
      'mode: "PLAN" is not a mode; use plan or interactive',
    )
  })

  test('a disk or memory limit alone is not compared with defaults', () => {
    expect(() => new ScriptExecutor({ limits: { diskBytes: 2048 * MiB } })).not.toThrow()
    expect(() => new ScriptExecutor({ limits: { memoryBytes: 80 * MiB } })).not.toThrow()
  })
})

describe('limits against the sandbox (EX-03)', () => {
  test('the defaults send no limits', async () => {
    const { sandbox } = await play([done()])
    expect(sandbox.sent).toMatchObject([{ timeout_sec: 30, max_output_bytes: MiB, limits: {} }])
  })

  test('lower limits of memory and pids are sent, equal ones are not', async () => {
    const { sandbox } = await play([done()], {
      limits: { memoryBytes: 100 * MiB, pids: 128, cpus: 1, diskBytes: 128 * MiB },
    })
    expect(sandbox.sent).toMatchObject([{ limits: { memory_bytes: 100 * MiB } }])
    expect(Object.keys((sandbox.sent[0] as { limits: object }).limits)).toEqual(['memory_bytes'])
  })

  test.each([
    [{ memoryBytes: 513 * MiB }, 'limits.memoryBytes'],
    [{ pids: 129 }, 'limits.pids'],
    [{ cpus: 2 }, 'limits.cpus'],
    [{ cpus: 0.5 }, 'limits.cpus'],
    [{ diskBytes: 64 * MiB }, 'limits.diskBytes'],
    [{ diskBytes: 256 * MiB }, 'limits.diskBytes'],
  ])('%j is refused and nothing is sent', async (limits, named) => {
    const sandbox = sandboxOf([done()])
    await expect(new ScriptExecutor({ limits }).run({ sandbox, script: 'x' })).rejects.toMatchObject({
      code: 'limit_not_enforceable',
      message: expect.stringContaining(named) as string,
    })
    expect([sandbox.sent, sandbox.destroyed]).toEqual([[], false])
  })
})

describe('the host counts too (EX-10)', () => {
  const limits = { maxOutputBytes: 1000 }
  const big = log('x'.repeat(30_000))

  test('output 64 KiB beyond the limit ends the run; earlier output is kept', async () => {
    const { result: got, sandbox } = await play([log('first'), big, big, big, result(1), done()], { limits })
    expect(got).toMatchObject({
      status: 'output-limit',
      errorKind: 'output_limit',
      success: false,
      error: 'the script sent more than maxOutputBytes (1000 bytes)',
      ending: {
        cause: 'output-limit',
        by: 'host',
      },
    })
    expect(got.logs.map(({ message }) => message.length)).toEqual([5, 30_000, 30_000])
    expect(sandbox.destroyed).toBe(true)
  })

  test('after a result it is a warning', async () => {
    const { result: got, sandbox } = await play([result(1), big, big, big], { limits })
    expect(got).toMatchObject({ status: 'completed', finalData: 1 })
    expect(got.warnings.map(({ code }) => code)).toEqual(['output_limit'])
    expect(sandbox.destroyed).toBe(true)
  })

  test("the harness's own error within the allowance decides", async () => {
    const { result: got, sandbox } = await play(
      [
        log('x'.repeat(990)),
        error('more than 1000 bytes of output', { kind: 'output_limit' }),
        done({ cause: 'output-limit' }),
      ],
      { limits },
    )
    expect(got).toMatchObject({ status: 'output-limit', error: 'more than 1000 bytes of output' })
    expect(sandbox.destroyed).toBe(false)
  })

  test.each([
    ['junk', Buffer.from(`${'junk '.repeat(200)}\n`)],
    ['empty lines', Buffer.from('\n'.repeat(1000))],
    ['frames of another run', { type: 'log', execution_id: 'other', message: 'x'.repeat(900) }],
    [
      'script_done of another run',
      { type: 'script_done', execution_id: 'other', warnings: [{ code: 'x'.repeat(900), message: '' }] },
    ],
    ['pongs', { type: 'pong', nonce: 'x'.repeat(900) }],
    ['stdout without text', Buffer.from(`${JSON.stringify(frame('stdout', { text: '' })).padEnd(900)}\n`)],
  ])('a flood of %s ends too', async (_name, line) => {
    // Most of the allowance is used up before: it would take 65,000 empty lines.
    const text = frame('stdout', { text: 'x'.repeat(60_000) })
    const flood = Array.from({ length: 200 }, () => line)
    const { result: got } = await play([text, ...flood], { limits, replay: { after: 'open' } })
    expect(got.status).toBe('output-limit')
  })

  test('stdout and stderr count by the bytes of their text, however it is cut', async () => {
    const text = 'a\0"\\ü€😀\n'
    for (const pieces of [[text], Array.from(text)]) {
      const frames = pieces.flatMap((piece) => [frame('stdout', { text: piece }), frame('stderr', { text: piece })])
      const { result: got } = await play([...frames, done()])
      expect(got.outputBytes).toBe(2 * Buffer.byteLength(text))
    }
  })

  test('text beyond the limit and its allowance ends the run', async () => {
    const text = 'x'.repeat(30_000)
    const { result: got } = await play(
      Array.from({ length: 3 }, () => frame('stdout', { text })),
      { limits },
    )
    expect([got.status, got.stdout.length, got.outputBytes]).toEqual(['output-limit', 60_000, 90_000])
  })

  test('an empty file and script_done are not counted', async () => {
    const { result: got } = await play([result(1), done()])
    expect(got.outputBytes).toBe(JSON.stringify(result(1)).length + 1)
  })
})

describe('kept stdout and stderr', () => {
  const limits = { maxOutputBytes: 8 * MiB }

  test('the first MiB is kept, cut between characters, and the rest is reported as missing', async () => {
    const text = `${'x'.repeat(400_000)}${'漢'.repeat(50_000)}`
    const frames = [text, text, text].map((piece) => frame('stdout', { text: piece }))
    const { result: got } = await play([...frames, done({}, { stdout_bytes: 1_650_000 })], { limits })
    const bytes = Buffer.byteLength(got.stdout)
    expect(bytes).toBeGreaterThan(MiB - 3)
    expect(bytes).toBeLessThanOrEqual(MiB)
    expect(`${text}${text}${text}`.startsWith(got.stdout)).toBe(true)
    expect(got).toMatchObject({ truncated: true, stdoutBytes: 1_650_000, stderr: '', status: 'step-done' })
  })

  test('output that the harness counted and did not send is truncated as well', async () => {
    const { result: got } = await play([frame('stderr', { text: 'abc' }), done({}, { stderr_bytes: 4 })])
    expect(got).toMatchObject({ truncated: true, stderr: 'abc', stderrBytes: 4 })
  })

  test('replaced bytes are not mistaken for a difference', async () => {
    const { result: got } = await play([frame('stdout', { text: '\uFFFD\uFFFD' }), done({}, { stdout_bytes: 2 })])
    expect(got).toMatchObject({ truncated: false, stdoutBytes: 2 })
  })

  test('without a count of the harness the host counts', async () => {
    const { result: got } = await play([frame('stdout', { text: 'ü' })])
    expect(got).toMatchObject({ stdoutBytes: 2, executionId: ID })
  })
})
