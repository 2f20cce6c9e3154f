import { expect, test } from 'vitest'
import type { Workspace } from '../../src/options/index.ts'
import { leastOf, measureMs } from '../../src/testing/conformance/least-of.ts'
import type { Program } from '../../src/workspace/index.ts'

/** Programs that are talked to, in a workspace of any engine that runs several at once. */
export function testPrograms(at: { readonly ws: Workspace }): void {
  test('WS-16: a program over pipes is talked to', async () => {
    await using program = await at.ws.start('sh', ['-c', "printf 'ready\\n'; read v; echo out:$v; echo err:$v >&2"])
    expect(await textUntil(program, 'ready\n')).toBe('ready\n')
    await program.write('hello', true)
    const { exitCode, signal } = await program.exited
    expect([exitCode, signal, program.status]).toEqual([0, null, 'exited'])
    const { text } = program.log()
    expect(text).toContain('out:hello\n')
    expect(text).toContain('err:hello\n')
  })

  test('WS-16, WS-17: a prompt without an end of line comes at once and once, in a terminal', async () => {
    await using program = await at.ws.start('sh', ['-c', "printf 'choose: '; read v; echo tty:$v"], {
      tty: { rows: 10, columns: 40 },
    })
    expect(await textUntil(program, 'choose: ')).toBe('choose: ')
    expect((await program.poll()).text).toBe('')
    await program.write('7', true)
    expect(await textUntil(program, 'tty:7\n')).toBe('7\ntty:7\n')
    expect((await program.exited).exitCode).toBe(0)
  })

  test('a terminal has a size, which can change', async () => {
    await using program = await at.ws.start('sh', ['-c', 'stty size; read v; stty size'], {
      tty: { rows: 10, columns: 40 },
    })
    expect(await textUntil(program, '\n')).toBe('10 40\n')
    program.resize({ rows: 50, columns: 132 })
    await program.write('', true)
    expect(await textUntil(program, '132\n')).toContain('50 132\n')
  })

  test('WS-16: input and variables from the start', async () => {
    await using program = await at.ws.start('sh', ['-c', 'read v; printf "%s|%s" "$v" "$CUSTOM"'], {
      stdin: 'hello\n',
      env: { CUSTOM: 'ok' },
    })
    await program.exited
    expect(program.log().text).toBe('hello|ok')
  })

  test('WS-18: kill lets a program end by itself', async () => {
    await using program = await at.ws.start('sh', [
      '-c',
      'trap "echo bye; exit 4" TERM; echo ready; while :; do sleep 0.05; done',
    ])
    await textUntil(program, 'ready')
    expect((await program.kill({ graceMs: 10_000 })).exitCode).toBe(4)
    expect(program.log().text).toContain('bye\n')
  })

  test('WS-18: kill ends a program that ignores SIGTERM after the grace', async () => {
    await using program = await at.ws.start('sh', ['-c', "trap '' TERM; echo ready; sleep 300"])
    await textUntil(program, 'ready')
    const { signal, timedOut } = await program.kill({ graceMs: 50 })
    expect([signal, timedOut]).toEqual(['SIGKILL', false])
  })

  test('WS-18: what is written after the end is refused, and close can be called twice', async () => {
    const program = await at.ws.start('true')
    await program.exited
    await expect(program.write('late')).rejects.toMatchObject({
      code: 'program_not_running',
      message: expect.stringContaining('session is not running') as string,
    })
    expect(() => program.signal('SIGINT')).toThrow('session is not running')
    await Promise.all([program.close(), program.close()])
    await program.close()
  })

  test('WS-17: nobody who reads: the log keeps the end and says what was dropped', async () => {
    await using program = await at.ws.start('sh', ['-c', 'yes 0123456 | head -c 8000000; echo the end'], {
      maxLogBytes: 262_144,
    })
    const { stdoutBytes } = await program.exited
    const { text, dropped, offset, nextOffset } = await program.poll({ maxBytes: 300_000 })
    expect(text.endsWith('the end\n')).toBe(true)
    expect({ stdoutBytes, dropped, offset, nextOffset }).toEqual({
      stdoutBytes: 8_000_008,
      dropped: 8_000_008 - 262_144,
      offset: 8_000_008 - 262_144,
      nextOffset: 8_000_008,
    })
  })

  test('WS-14: the end of one program harms no other', async () => {
    const timeOfEnd = async (): Promise<number> => {
      await using server = await at.ws.start('sh', ['-c', 'while read v; do echo "answer $v"; done'])
      await using flood = await at.ws.start('yes')
      const held = flood.output[Symbol.asyncIterator]()
      await held.next()
      await server.write('1', true)
      expect(await textUntil(server, 'answer 1\n')).toBe('answer 1\n')
      const ms = await measureMs(() => flood.kill({ graceMs: 0 }))
      await held.return?.()
      await server.write('2', true)
      expect(await textUntil(server, 'answer 2\n')).toBe('answer 2\n')
      return ms
    }
    expect(await leastOf(3, 1000, timeOfEnd)).toBeLessThan(1000)
  })

  test('WS-14: a timeout of a started program kills it', async () => {
    await using program = await at.ws.start('sleep', ['300'], { timeoutSec: 0.3 })
    const { timedOut, signal } = await program.exited
    expect([timedOut, signal]).toEqual([true, 'SIGKILL'])
  })
}

/** Polls until a text is in the output of a program. */
async function textUntil(program: Program, end: string): Promise<string> {
  let all = ''
  while (!all.includes(end) && program.status === 'running') all += (await program.poll({ waitMs: 5000 })).text
  return all
}
