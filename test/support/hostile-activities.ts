import { expect, test } from 'vitest'
import type { Workspace } from '../../src/options/index.ts'
import { leastOf, measureMs } from '../../src/testing/conformance/least-of.ts'
import type { Program } from '../../src/workspace/index.ts'

const forever = (body: string): string => `while True:\n    try:\n        ${body}\n    except OSError: pass`
/** Programs that do not want to end, and what they do. */
const OBSTINATE: Readonly<Record<string, string>> = {
  'fork without end': `import os\n${forever('os.fork()')}`,
  'fork without end into sessions of their own': `import os\n${forever('os.fork() or os.setsid()')}`,
  'hide in a daemon that ignores every signal': [
    'import os, signal, sys',
    'if os.fork(): sys.stdin.read()',
    'os.setsid()',
    'if os.fork(): os._exit(0)',
    'for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(number, signal.SIG_IGN)',
    'while True: signal.pause()',
  ].join('\n'),
  'stop themselves': 'import os, signal\nos.fork()\nos.kill(0, signal.SIGSTOP)',
}
/** From a cancellation to the end of everything, of which 500 ms are the sandbox's own bound. */
const END_MS = 1000

/** Attacks of activities on each other and on their end, within one workspace. `at.ws` is defined in tests. */
export function testHostileActivities(at: { readonly ws: Workspace }): void {
  test.each(Object.entries(OBSTINATE))(
    'WS-14: programs that %s end at once, and a neighbour goes on',
    async (_, code) => {
      await using neighbour = await at.ws.start('cat')
      const timeOfEnd = async (): Promise<number> => {
        const program = await at.ws.start('python3', ['-c', code])
        await settle(neighbour, 'before')
        const ms = await measureMs(() => program.close())
        await settle(neighbour, 'after')
        return ms
      }
      expect(await leastOf(3, END_MS, timeOfEnd)).toBeLessThan(END_MS)
      const { stdout } = await at.ws.exec('sh', [
        '-c',
        'for f in /proc/[0-9]*/cmdline; do tr "\\0" " " < $f; echo; done',
      ])
      expect(stdout.split('\n').filter((line) => line.startsWith('python3 -c'))).toEqual([])
    },
  )

  test('WS-14: an activity can neither signal nor look into another one, a keeper or the broker', async () => {
    await using neighbour = await at.ws.start('cat', [], { env: { MARK: 'of-the-neighbour' } })
    const look = [
      'import os, signal',
      'found = []',
      'own = {os.getpid()}',
      'for name in os.listdir("/proc"):',
      '    if not name.isdigit() or int(name) in own: continue',
      '    for number in (0, signal.SIGCONT, signal.SIGKILL):',
      '        try: os.kill(int(name), number); found.append([name, number])',
      '        except OSError: pass',
      '    for part in ("mem", "environ", "maps"):',
      '        try: open(f"/proc/{name}/{part}", "rb").read(1); found.append([name, part])',
      '        except OSError: pass',
      'os.kill(-1, signal.SIGKILL)', // succeeds, and reaches nobody
      'emit_result(found)',
    ].join('\n')
    if (at.ws.trust !== 'separate') throw new Error('this kernel has no Landlock with a scope of signals (Linux 6.12)')
    expect((await at.ws.run(look)).finalData).toEqual([])
    await settle(neighbour, 'still here')
  })

  test('a file that has the name of a module runs in no program of another activity', async () => {
    const names = ['warnings', 'fcntl', 'json', 'encodings', 'struct', 'os', 'signal', 'array', 'posixpath']
    const planted = 'open("/tmp/ran", "a").write(__name__)\n'
    await at.ws.put(Object.fromEntries(names.map((name) => [`${name}.py`, planted])))
    const { exitCode } = await at.ws.exec('true', [], { env: { KEY: 'of-the-program' } })
    const { stdout } = await at.ws.exec('sh', ['-c', 'cat /tmp/ran; rm -f *.py'])
    expect([exitCode, stdout]).toEqual([0, ''])
  })

  test('WS-14: a program whose output nobody reads delays no other', async () => {
    const timeOfAll = async (): Promise<number> => {
      await using flood = await at.ws.start('sh', ['-c', 'yes'])
      await using other = await at.ws.start('sleep', ['300'])
      const began = performance.now()
      await other.close()
      expect((await at.ws.exec('echo', ['ok'])).stdout).toBe('ok\n')
      await flood.close()
      return performance.now() - began
    }
    expect(await leastOf(3, END_MS, timeOfAll)).toBeLessThan(END_MS)
  })

  test('a program whose output another activity goes on writing ends, and the workspace does not', async () => {
    const taker = [
      'import os, signal, socket',
      'server = socket.socket(socket.AF_UNIX); server.bind("taken"); server.listen()',
      'print("ready", flush=True)',
      '_, fds, _, _ = socket.recv_fds(server.accept()[0], 1, 1)',
      'try:',
      '    while True: os.write(fds[0], b"x" * 65536)',
      'except BrokenPipeError: signal.pause()',
    ].join('\n')
    const giver =
      'import socket\nto = socket.socket(socket.AF_UNIX); to.connect("taken")\nsocket.send_fds(to, [b"1"], [1])'
    await using taking = await at.ws.start('python3', ['-c', taker])
    await taking.poll({ waitMs: 10_000 })
    const { exitCode } = await at.ws.exec('python3', ['-c', giver])
    expect([exitCode, taking.status, (await at.ws.exec('rm', ['taken'])).exitCode]).toEqual([0, 'running', 0])
  })

  test('jobs of an interactive shell are not stopped by the end of another program', async () => {
    await using shell = await at.ws.start('bash', ['--norc', '-i'], { tty: true })
    await shell.write('sleep 300 & echo st""arted', true)
    let text = await readUntil(shell, 'started')
    await at.ws.exec('sh', ['-c', 'sleep 300 & sleep 300'], { timeoutSec: 0.05 })
    await shell.write('jobs; echo do""ne', true)
    text += await readUntil(shell, 'done')
    expect(text).toContain('Running')
    expect(text).not.toContain('Stopped')
  })
}

/** Sends a line through `cat` and waits for it. */
async function settle(program: Program, line: string): Promise<void> {
  await program.write(line, true)
  await readUntil(program, line)
}

async function readUntil(program: Program, wanted: string): Promise<string> {
  let text = ''
  while (!text.includes(wanted)) {
    const { text: more, status } = await program.poll({ waitMs: 10_000 })
    if (more === '') throw new Error(`no ${JSON.stringify(wanted)} in ${JSON.stringify(text)}; it is ${status}`)
    text += more
  }
  return text
}
