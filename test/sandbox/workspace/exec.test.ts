import { afterAll, expect, test } from 'vitest'
import { leastOf, measureMs } from '../../../src/testing/conformance/least-of.ts'
import { inWorkspace } from '../../support/workspace-on-local.ts'

// Before the sandbox starts: later it could inherit nothing of it.
process.env['SANDGLASS_TEST_MARK'] = 'of the host'
afterAll(() => delete process.env['SANDGLASS_TEST_MARK'])

await inWorkspace((at) => {
  test('WS-13: a program has stdout, stderr and an exit code, and a failure is a value', async () => {
    const result = await at.ws.exec('sh', ['-c', 'echo out; echo err >&2; exit 3'])
    expect({ ...result, durationMs: 0 }).toEqual({
      exitCode: 3,
      signal: null,
      outOfMemory: false,
      timedOut: false,
      stdout: 'out\n',
      stderr: 'err\n',
      stdoutBytes: 4,
      stderrBytes: 4,
      truncated: false,
      durationMs: 0,
    })
    expect(result.durationMs).toBeGreaterThan(0)
  })

  test('WS-13: a program that does not exist has exit code -1 and the reason in stderr', async () => {
    const { exitCode, stdout, stderr } = await at.ws.exec('no-such-program')
    expect([exitCode, stdout]).toEqual([-1, ''])
    expect(stderr).toContain('no-such-program')
  })

  test('WS-13: arguments reach the program as they are; no shell reads them', async () => {
    const args = ['$HOME', '`id`', "it's", 'two\nlines', '', '漢']
    const { stdout } = await at.ws.exec('python3', ['-c', 'import sys; print(ascii(sys.argv[1:]))', ...args])
    expect(stdout).toBe(`['$HOME', '\`id\`', "it's", 'two\\nlines', '', '\\u6f22']\n`)
  })

  test('WS-13: standard input is a string, bytes or a stream, and is empty without one', async () => {
    async function* pieces(): AsyncGenerator<Uint8Array | string> {
      yield 'one '
      await Promise.resolve()
      yield Buffer.from('two')
    }
    const outputs = [
      await at.ws.exec('cat', [], { stdin: 'text' }),
      await at.ws.exec('cat', [], { stdin: Buffer.from([0x61, 0x0a]) }),
      await at.ws.exec('cat', [], { stdin: pieces() }),
      await at.ws.exec('cat'),
    ]
    expect(outputs.map(({ stdout }) => stdout)).toEqual(['text', 'a\n', 'one two', ''])
  })

  test('WS-13: a program that does not read its input ends all the same', async () => {
    const { exitCode } = await at.ws.exec('true', [], { stdin: new Uint8Array(2 * 1024 * 1024) })
    expect(exitCode).toBe(0)
  })

  // WS-13, WS-22
  test('the environment of the host is not inherited; that of the caller is added', async () => {
    const script = 'echo "${SANDGLASS_TEST_MARK-none} $OWN"; [ -n "$WORKSPACE_DIR" ] && echo there'
    expect((await at.ws.exec('sh', ['-c', script], { env: { OWN: 'mine' } })).stdout).toBe('none mine\nthere\n')
  })

  test('WS-22: secrets are in the environment and redacted in the output, and in no argument', async () => {
    const { stdout, stderr } = await at.ws.exec(
      'sh',
      ['-c', 'printf "%s" "$TOKEN" | wc -c; echo "$TOKEN" >&2; tr "\\0" " " < /proc/self/cmdline'],
      { secrets: { TOKEN: 'sesame-open-42' } },
    )
    expect(stderr).toBe('[redacted:TOKEN]\n')
    expect(stdout).toMatch(/^14\n/)
    expect(stdout).not.toContain('sesame')
  })

  test('WS-13: the directory is one inside of the workspace', async () => {
    await at.ws.exec('sh', ['-c', 'mkdir -p sub/deeper; ln -sfn / out-there'])
    expect((await at.ws.exec('sh', ['-c', 'pwd'], { cwd: 'sub/deeper' })).stdout).toMatch(/\/sub\/deeper\n$/)
    await expect(at.ws.exec('pwd', [], { cwd: '../..' })).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(at.ws.exec('pwd', [], { cwd: '/tmp' })).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(at.ws.exec('pwd', [], { cwd: 'out-there' })).rejects.toMatchObject({ code: 'path_refused' })
    await expect(at.ws.exec('pwd', [], { cwd: 'not-there' })).rejects.toMatchObject({ code: 'path_not_found' })
  })

  test('WS-14: a timeout kills the whole tree, also a grandchild that holds the pipe, within a second', async () => {
    const script = '(setsid sh -c "trap \\"\\" TERM; sleep 300") & echo begun; sleep 300'
    const timeOfEnd = (): Promise<number> =>
      measureMs(async () => {
        const { timedOut, signal, exitCode, stdout } = await at.ws.exec('sh', ['-c', script], { timeoutSec: 1 })
        expect({ timedOut, signal, exitCode, stdout }).toEqual({
          timedOut: true,
          signal: 'SIGKILL',
          exitCode: 137,
          stdout: 'begun\n',
        })
      })
    expect(await leastOf(3, 2000, timeOfEnd)).toBeLessThan(2000)
    expect(
      (await at.ws.exec('sh', ['-c', 'cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -c "sleep 30[0]"'])).stdout,
    ).toBe('0\n')
  })

  test('WS-14: an abort kills it as well, and rejects', async () => {
    const controller = new AbortController()
    const onOutput = (): void => controller.abort()
    const running = at.ws.exec('sh', ['-c', 'echo begun; sleep 300'], { signal: controller.signal, onOutput })
    await expect(running).rejects.toMatchObject({ code: 'aborted' })
    await expect(at.ws.exec('true', [], { signal: controller.signal })).rejects.toMatchObject({ code: 'aborted' })
    expect((await at.ws.exec('echo', ['on'])).stdout).toBe('on\n')
  })

  test('a callback that throws kills the program, and its error is the outcome', async () => {
    const onOutput = (): never => {
      throw new RangeError('enough')
    }
    await expect(at.ws.exec('yes', [], { onOutput })).rejects.toThrow(RangeError)
  })

  test('WS-13: large output is held to its head and tail, and counted whole', async () => {
    const script = 'import sys; sys.stdout.write("head" + "ü" * 5_000_000 + "tail")'
    const { stdout, stdoutBytes, truncated } = await at.ws.exec('python3', ['-c', script], { maxOutputBytes: 1000 })
    expect([stdoutBytes, truncated]).toEqual([10_000_008, true])
    expect(Buffer.byteLength(stdout)).toBeLessThanOrEqual(1000)
    expect(stdout).toMatch(/^headü+\n\.\.\.\[output truncated\]\.\.\.\nü+tail$/)
  })

  test('WS-15: a program that was killed for memory says so, and others go on', async () => {
    const { probes, limitsEnforced } = await at.sg.report()
    expect(probes['programs']).toContain('bash')
    expect(probes['activities_apart']).toBe(at.ws.trust === 'separate' ? 'landlock' : 'scan')
    if (!limitsEnforced.includes('memory')) return
    await using cat = await at.ws.start('cat')
    const greedy = 'held = [bytes(range(256)) * (1 << 20) for _ in range(64)]'
    const killed = await at.ws.exec('python3', ['-c', greedy])
    expect([killed.exitCode, killed.signal, killed.outOfMemory]).toEqual([137, 'SIGKILL', true])
    const below = await at.ws.exec('sh', ['-c', `python3 -c '${greedy}'`])
    expect([below.exitCode, below.outOfMemory]).toEqual([137, true])
    const byItself = await at.ws.exec('sh', ['-c', 'kill -9 $$'])
    expect([byItself.exitCode, byItself.outOfMemory]).toEqual([137, false])
    await cat.write('here')
    expect((await cat.poll({ waitMs: 5000 })).text).toBe('here')
  })

  test('a callback that never resolves does not keep an abort waiting', async () => {
    const onOutput = (): Promise<never> => Promise.withResolvers<never>().promise
    const timeOfEnd = (): Promise<number> =>
      measureMs(() =>
        expect(at.ws.exec('yes', [], { onOutput, signal: AbortSignal.timeout(50) })).rejects.toMatchObject({
          code: 'aborted',
        }),
      )
    expect(await leastOf(3, 1000, timeOfEnd)).toBeLessThan(1000)
  })

  test('WS-15: limits of a program hold for it alone', async () => {
    const write = ['-c', 'open("big", "wb").write(bytes(2_000_000))']
    const limited = await at.ws.exec('python3', write, { limits: { fileBytes: 1_000_000 } })
    const free = await at.ws.exec('python3', write)
    expect([limited.exitCode === 0, free.exitCode]).toEqual([false, 0])
    const spin = await at.ws.exec('python3', ['-c', 'while True: pass'], { limits: { cpuSec: 1 } })
    expect(spin.signal).not.toBe(null)
  })

  test('options that do not exist and values that cannot be used are refused before anything runs', async () => {
    await expect(at.ws.exec('true', [], { timeoutSecs: 3 } as object)).rejects.toThrow('timeoutSec')
    const wrong = [
      at.ws.exec(''),
      at.ws.exec('true', ['\0']),
      at.ws.exec('true', [], { env: { 'A=B': 'x' } }),
      at.ws.exec('true', [], { timeoutSec: 0 }),
      at.ws.exec('true', [], { limits: { pids: 0.5 } }),
      at.ws.exec('true', [], { maxOutputBytes: 0 }),
      at.ws.exec('true', [], { secrets: { LD_PRELOAD: 'x' } }),
    ]
    for (const refused of wrong) await expect(refused).rejects.toMatchObject({ code: 'invalid_request' })
  })
})
