import { spawnSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { lastLine, makeCli } from '../../support/cli/sandglass.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

const exec = (...args: string[]): ReturnType<typeof cli.run> => cli.run(['exec', '--new', '--engine', 'local', ...args])

describe.skipIf(skip)('sandglass exec', () => {
  test('streams and exit code are those of the program', async () => {
    const ended = await exec('--', 'sh', '-c', 'echo out; echo err >&2; exit 3')
    expect(ended).toEqual({ code: 3, stdout: 'out\n', stderr: 'err\n' })
  })

  test('--json prints one line', async () => {
    const ended = await exec('--json', '--', 'sh', '-c', 'echo out; kill -9 $$')
    expect(lastLine(ended)).toMatchObject({
      type: 'program',
      exit_code: 137,
      signal: 'SIGKILL',
      timed_out: false,
      out_of_memory: false,
      stdout: 'out\n',
      stdout_bytes: 4,
      truncated: false,
    })
    expect(ended.code).toBe(137)
  })

  test('stdin goes to the program, and bytes stay bytes', async () => {
    const ended = await cli.run(
      ['exec', '--new', '--engine', 'local', '--', 'sh', '-c', 'wc -c; printf "\\303\\050"'],
      {
        input: 'x'.repeat(300_000),
      },
    )
    expect(ended.stdout).toMatch(/^300000\n/)
  })

  test('124 after the timeout, 127 without such a program', async () => {
    const [late, missing] = await Promise.all([
      exec('--timeout', '0.3', '--', 'sleep', '60'),
      exec('--', 'no-such-program'),
    ])
    expect([late.code, missing.code]).toEqual([124, 127])
    expect(missing.stderr).toContain('there is no program "no-such-program"')
  })

  test('WS-22: files, variables and a directory, and nothing of the environment of the caller', async () => {
    const file = cli.file('input.txt', 'of the host')
    const ended = await cli.run(
      [
        'exec',
        '--new',
        '--engine',
        'local',
        '--file',
        `${file}:in/a.txt`,
        '--env',
        'A=b',
        '--cwd',
        'in',
        '--',
        'sh',
        '-c',
        'cat a.txt; env',
      ],
      { env: { FROM_CALLER: 'secret' } },
    )
    expect(ended.stdout).toContain('of the host')
    expect(ended.stdout).toContain('A=b\n')
    expect(ended.stdout).not.toContain('FROM_CALLER')
  })

  test('a secret is hidden in what the program prints', async () => {
    const ended = await cli.run(
      ['exec', '--new', '--engine', 'local', '--secret', 'KEY', '--', 'sh', '-c', 'echo $KEY'],
      {
        env: { KEY: 'sesame-open' },
      },
    )
    expect(ended.stdout).toBe('[redacted:KEY]\n')
  })

  test.each([
    [['exec', '--', 'ls'], 'exec needs --new'],
    [['exec', '--new'], 'exec needs a program'],
    [['exec', '--new', '--tty', '--json', '--', 'ls'], '--json for programs'],
    [['exec', '--new', '--env', 'A', '--', 'ls'], 'NAME=VALUE'],
    [['exec', '--new', '--cwd', '../..', '--', 'ls'], 'cwd'],
    [['shell'], 'needs a terminal'],
  ])('%j is wrong usage', async (args, message) => {
    const ended = await cli.run(args)
    expect(ended.code).toBe(2)
    expect(ended.stderr).toContain(message)
  })

  test('--engine pyodide says which engines have programs', async () => {
    const ended = await cli.run(['exec', '--new', '--engine', 'pyodide', '--', 'ls'])
    expect(ended.code).toBe(8)
    expect(ended.stderr).toContain('docker')
  })

  test('SH-018: on a terminal, what a program writes is escaped except styles, which end with it', async () => {
    const terminal = ['python3', '-c', 'import pty, sys; pty.spawn(sys.argv[1:])']
    const text = '\\033[2J\\033]0;title\\007\\033]52;c;ZWNobyBwd25lZA==\\007\\033[8mhidden\\033[2J'
    const ended = await cli.run(['exec', '--new', '--engine', 'local', '--', 'printf', text], { wrapper: terminal })
    expect(ended.stdout.replaceAll('\u001B', '<ESC>')).toBe(
      '\\x1b[2J\\x1b]0;title\\x07\\x1b]52;c;ZWNobyBwd25lZA==\\x07<ESC>[8mhidden\\x1b[2J<ESC>[0m',
    )
  })

  test('files are sent on a terminal as they are without one', async () => {
    const terminal = ['python3', '-c', 'import pty, sys; pty.spawn(sys.argv[1:])']
    const program = cli.file('tool.sh', '#!/bin/sh\necho ran\n')
    chmodSync(program, 0o755)
    for (const command of [
      ['exec', '--new', '--engine', 'local', '--file', `${program}:bin/tool`, '--', 'bin/tool'],
      ['run', '--engine', 'local', '--file', `${program}:bin/tool`, '-c', 'import os\nos.system("bin/tool")'],
    ]) {
      const ended = await cli.run(command, { wrapper: terminal })
      expect(ended.stdout).toContain('ran')
      expect(ended.stdout).not.toContain('sending')
      expect(ended.code).toBe(0)
    }
  })

  test('shell is a terminal, which is reset at the end', () => {
    const main = new URL('../../../src/cli/main.ts', import.meta.url).pathname
    const command = `stty rows 31 cols 97; exec ${process.execPath} ${main} shell --engine local`
    // A terminal around the command, which types when a prompt is there.
    const driver = `import os, pty, sys
out, sent = b"", [b"stty size\\n", b"printf '\\\\033[8m\\\\033[?25l'; exit\\n"]
pid, fd = pty.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", sys.argv[1]])
while True:
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    if not data:
        break
    out += data
    if len(sent) == 2 and b"$ " in out or len(sent) == 1 and b"31 97" in out:
        os.write(fd, sent.pop(0))
sys.stdout.write(out.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))`
    const ended = spawnSync('/usr/bin/python3', ['-c', driver, command], { encoding: 'utf8', timeout: 30_000 })
    expect(ended.stdout).toContain('31 97')
    expect(ended.stdout.replaceAll('\u001B', '<ESC>')).toMatch(
      /<ESC>\[8m<ESC>\[\?25l[^]*<ESC>\[!p<ESC>\[0m<ESC>\[\?1047l<ESC>\[\?1000;1002;1003;1006;2004l$/,
    )
    expect(ended.status).toBe(0)
  })
})
