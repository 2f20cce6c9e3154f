import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { lastLine, type Line, linesOf, makeCli } from '../../support/cli/sandglass.ts'

const { skip } = await requireLocalEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

describe.skipIf(skip)('sandglass run --json', () => {
  test.concurrent.each<[string, string, string[], number, Partial<Line>]>([
    ['a result', 'emit_result({"a": 1})', [], 0, { status: 'completed', error_kind: null, final_data: { a: 1 } }],
    ['no result', 'print("x")', [], 0, { status: 'step-done', error_kind: null, success: false, stdout: 'x\n' }],
    ['no result in plan', 'print("x")', ['--mode', 'plan'], 1, { status: 'failed', error_kind: 'error' }],
    ['an exception', '1 / 0', [], 1, { status: 'failed', error: 'ZeroDivisionError: division by zero' }],
    ['a crash', 'import os; os._exit(9)', [], 1, { status: 'crashed', error_kind: 'crash' }],
    ['a timeout', 'while True: pass', ['--timeout', '0.3'], 4, { status: 'timed-out', error_kind: 'timeout' }],
    [
      'too much memory',
      'x = bytearray(600_000_000)\nfor i in range(0, len(x), 4096): x[i] = 1',
      ['--memory', '128m', '--require', 'memory'],
      5,
      { status: 'memory-limit', error_kind: 'oom' },
    ],
    [
      'too much output',
      'while True: print("x" * 1000)',
      ['--max-output', '64k'],
      6,
      { status: 'output-limit', error_kind: 'output_limit' },
    ],
  ])('%s', async (_what, script, flags, code, expected) => {
    const ended = await cli.run(['run', '-', '--json', ...flags], { input: script })
    expect(lastLine(ended)).toMatchObject({ type: 'result', id: null, ...expected })
    expect(ended.code).toBe(code)
    expect(ended.stdout.split('\n')).toHaveLength(2)
  })

  test('--stdin: a script reads a file, or what the command reads', async () => {
    const path = cli.file('stdin.txt', 'from a file')
    const read = ['run', '-c', 'import sys; print(sys.stdin.read(), end="")']
    expect((await cli.run([...read, '--stdin', path])).stdout).toBe('from a file')
    expect((await cli.run([...read, '--stdin', '-'], { input: 'piped' })).stdout).toBe('piped')
    expect((await cli.run(read, { input: 'piped' })).stdout).toBe('')
  })

  test('WS-26: --skill shows a skill read-only, and refuses a directory that is none and an engine that cannot', async () => {
    const skill = join(cli.directory, 'skill')
    mkdirSync(skill)
    const script =
      'import os\npath = "/inputs/skills/tool/k.txt"\ntry: open(path, "w")\nexcept OSError as e: print(e.strerror)\n' +
      'print(open(path).read(), os.getcwd())'
    const run = ['run', '-', '--skill', skill]
    const missing = await cli.run(run, { input: script })
    expect([missing.code, missing.stderr.includes('SKILL.md: there is no such file')]).toEqual([2, true])
    writeFileSync(join(skill, 'SKILL.md'), '---\nname: tool\ndescription: x\n---\n')
    writeFileSync(join(skill, 'k.txt'), 'known', { mode: 0o666 })
    const ended = await cli.run(run, { input: script })
    expect([ended.code, ended.stdout]).toEqual([0, 'Read-only file system\nknown /workspace\n'])
    const twice = await cli.run([...run, '--skill', skill], { input: script })
    expect([twice.code, twice.stderr.includes('there are two skills tool')]).toEqual([2, true])
    const elsewhere = await cli.run([...run, '--engine', 'pyodide'], { input: script })
    expect([elsewhere.code, elsewhere.stderr.includes('--skill: the engine pyodide')]).toEqual([8, true])
  })

  test('an unmet requirement exits with 8', async () => {
    const ended = await cli.run(['run', '-', '--json', '--require', 'vm'])
    expect(lastLine(ended)).toMatchObject({ type: 'error', status: 'sandbox-lost', code: 'requirement_unmet' })
    expect(ended.code).toBe(8)
  })

  test('a missing tools directory exits with 2; an existing one provides its functions to the script', async () => {
    mkdirSync(join(cli.directory, 'tools'))
    cli.file('tools/greet.py', 'def greet(name):\n    return f"hello {name}"\n')
    const [missing, found] = await Promise.all([
      cli.run(['run', '-', '--json', '--tools-dir', '/nonexistent'], { input: '1' }),
      cli.run(['run', '-', '--json', '--tools-dir', join(cli.directory, 'tools')], {
        input: 'emit_result(greet("you"))',
      }),
    ])
    expect([missing.code, lastLine(missing).code]).toEqual([2, 'packages_unreadable'])
    expect(lastLine(found)).toMatchObject({ status: 'completed', final_data: 'hello you' })
  })

  test('a broken file of the tools directory is a warning of the result, and the other files work', async () => {
    const tools = join(cli.directory, 'broken-tools')
    mkdirSync(tools)
    cli.file('broken-tools/fine.py', 'def fine():\n    return 1\n')
    cli.file('broken-tools/open.py', 'def open_bracket(:\n    pass\n')
    cli.file('broken-tools/raises.py', 'settings = load_settings()\n')
    const script = 'emit_result(fine())'
    const requests = ['a', 'b'].map((id) => `${JSON.stringify({ id, script })}\n`).join('')
    const [asJson, forPeople, batch] = await Promise.all([
      cli.run(['run', '-', '--json', '--tools-dir', tools], { input: script }),
      cli.run(['run', '-', '--tools-dir', tools], { input: script }),
      cli.run(['batch', '--max-uses', '1', '--tools-dir', tools], { input: requests }),
    ])
    const { status, final_data: data, warnings = [] } = lastLine(asJson)
    expect([asJson.code, asJson.stderr, status, data]).toEqual([0, '', 'completed', 1])
    expect(warnings.map(({ code, message }) => [code, message])).toEqual([
      ['tool_not_loaded', expect.stringMatching(/open\.py .*: SyntaxError: invalid syntax/)],
      ['tool_not_loaded', expect.stringMatching(/raises\.py .*: NameError: name 'load_settings' is not defined/)],
    ])
    const formatWarnings = (mark: string): string => warnings.map(({ message }) => `${mark}${message}\n`).join('')
    expect(forPeople).toEqual({ code: 0, stdout: '1\n', stderr: formatWarnings('[warning] tool_not_loaded: ') })
    expect(linesOf(batch).map((line) => [line.status, line.warnings])).toEqual([
      ['completed', warnings],
      ['completed', warnings],
    ])
    expect(batch.stderr).toBe(formatWarnings('sandglass: --tools-dir: '))
  })

  test('--events prints each event as it comes, then the result line', async () => {
    const ended = await cli.run(['run', '-', '--events'], {
      input:
        'print("hi")\nemit_log("note")\nemit_intermediate("half", 50)\nemit_result(None)\nraise ValueError("late")',
    })
    const lines = linesOf(ended)
    const types = lines.map(({ type }) => type)
    // Frames and output travel on different descriptors, so the order between them is not promised.
    expect(types.filter((type) => type !== 'stdout')).toEqual([
      'started',
      'log',
      'intermediate',
      'final_result',
      'result',
    ])
    expect(lines.find(({ type }) => type === 'stdout')).toMatchObject({ text: 'hi\n' })
    expect(lines.at(-1)).toMatchObject({
      status: 'completed',
      final_data: null,
      warnings: [{ code: 'error_after_result' }],
    })
    expect(ended.code).toBe(0)
  })
})

describe.skipIf(skip)('sandglass run, for people', () => {
  test('output of the script at once, everything else marked on stderr, the result last', async () => {
    const script = cli.file(
      'report.py',
      'import sys\nprint("working", end="")\nprint("careful", file=sys.stderr)\nemit_intermediate("half", 50)\nemit_result({"n": n})\n',
    )
    const ended = await cli.run(['run', script, '--input', 'n=7'])
    expect(ended.stdout).toBe('working\n{\n  "n": 7\n}\n')
    expect(ended.stderr.split('\n').toSorted()).toEqual(['', '[intermediate] half: 50', 'careful'])
    expect(ended.code).toBe(0)
  })

  test('a text is printed unchanged; a failure with its traceback', async () => {
    const [text, failure] = await Promise.all([
      cli.run(['run', '-'], { input: 'emit_result("plain\\ntext")' }),
      cli.run(['run', '-'], { input: '\nraise KeyError("k")' }),
    ])
    expect(text).toEqual({ code: 0, stdout: 'plain\ntext\n', stderr: '' })
    expect(failure.code).toBe(1)
    expect(failure.stdout).toBe('')
    expect(failure.stderr).toMatch(/^\[traceback\] Traceback .*\n[^]*line 2[^]*\n\[failed\] KeyError: 'k'\n$/)
  })

  test('control sequences of a script cannot forge our marks', async () => {
    const { stderr } = await cli.run(['run', '-'], { input: 'emit_log("a\\n[failed] b\\x1b]0;t\\x07", "info")' })
    expect(stderr).toBe('[info] a\n    [failed] b\\x1b]0;t\\x07\n')
  })

  test('on a terminal, a style that a script leaves ends before our lines and at the end', async () => {
    const terminal = ['python3', '-c', 'import pty, sys; pty.spawn(sys.argv[1:])']
    const script = cli.file('hides.py', 'print("\\x1b[8mhidden", end="", flush=True)\nraise ValueError("\\x1b[8m")\n')
    const { stdout } = await cli.run(['run', script], { wrapper: terminal, env: { TERM: 'dumb' } })
    const [, between] =
      /^<ESC>\[8mhidden<ESC>\[0m\r\n(.*)\r\n\[failed\] ValueError: \\x1b\[8m\r\n$/s.exec(
        stdout.replaceAll('\u001B', '<ESC>'),
      ) ?? []
    expect(between).toMatch(/^\[traceback\] /)
  })
})

describe.skipIf(skip)('sandglass run with files', () => {
  test('files go in, matching ones come back and are saved', async () => {
    const host = cli.file('numbers.txt', '1 2 3')
    const save = join(cli.directory, 'saved')
    const ended = await cli.run(
      ['run', '-', '--json', '--file', host, '--file', `${host}:in/copy.txt`, '--collect', 'out/**', '--save', save],
      {
        input:
          'import os\nos.makedirs("out/deep")\ntext = open("numbers.txt").read() + "|" + open("in/copy.txt").read()\n' +
          'open("out/deep/all.txt", "w").write(text)\nemit_result(text)',
      },
    )
    expect(lastLine(ended)).toMatchObject({ status: 'completed', final_data: '1 2 3|1 2 3' })
    expect(readFileSync(join(save, 'out/deep/all.txt'), 'utf8')).toBe('1 2 3|1 2 3')
    expect(ended.code).toBe(0)
  })

  test('the script may stand on the command line, and begin with a dash', async () => {
    const ended = await cli.run(['run', '-c', '-1\nemit_result(open("in.txt").read())', '--file=-:in.txt'], {
      input: 'from stdin',
    })
    expect(ended).toEqual({ code: 0, stdout: 'from stdin\n', stderr: '' })
  })

  test('a file may be stdin, and a script may begin with a byte order mark', async () => {
    const script = cli.file('marked.py', '\uFEFFemit_result(open("in.txt").read())')
    const ended = await cli.run(['run', script, '--file=-:in.txt'], { input: 'from stdin' })
    expect(ended).toEqual({ code: 0, stdout: 'from stdin\n', stderr: '' })
  })

  test('a file keeps that it is executable; a pipe is read, too; what cannot be read is an error before anything starts', async () => {
    const tool = cli.file('tool.sh', '#!/bin/sh\necho ran')
    chmodSync(tool, 0o700)
    const script = 'import os\nemit_result([oct(os.stat(p).st_mode & 0o777) for p in ("tool.sh", "fifo")])'
    const fifo = join(cli.directory, 'fifo')
    execFileSync('mkfifo', [fifo])
    const written = writeFile(fifo, 'x')
    const { code, stdout } = await cli.run(['run', '-c', script, '--json', '--file', tool, '--file', fifo])
    await written
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { final_data: ['0o755', '0o644'] }])
    for (const [path, reason] of [
      ['missing', 'ENOENT'],
      ['.', 'it is a directory'],
    ]) {
      const refused = await cli.run(['run', '-c', '1', '--file', join(cli.directory, path ?? '')])
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(reason ?? '')])
      expect(refused.stderr).toContain('cannot read --file ')
    }
    const huge = cli.file('huge', '')
    truncateSync(huge, 200 * 1024 * 1024)
    const refused = await cli.run(['run', '-c', '1', '--file', huge])
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining('209715200 bytes do not fit on a disk of 134217728; the library takes larger ones'),
    ])
  }, 60_000)

  test('names that begin with a dot are not collected, and nothing that is there is replaced', async () => {
    const save = join(cli.directory, 'kept')
    mkdirSync(join(save, 'out'), { recursive: true })
    writeFileSync(join(save, 'out/mine.txt'), 'mine')
    const script = [
      'import os',
      'os.makedirs(".git")',
      'os.makedirs("out")',
      'for path in (".git/config", ".envrc", "out/mine.txt", "out/other.txt"):',
      '    open(path, "w").write("the script")',
    ].join('\n')
    const args = ['run', '-', '--json', '--collect', '**', '--save', save]
    const refused = await cli.run(args, { input: script })
    expect(lastLine(refused).files?.map(({ path }) => path)).toEqual(['out/mine.txt', 'out/other.txt'])
    expect(lastLine(refused).warnings).toEqual([
      {
        code: 'not_saved',
        message: 'nothing was saved, because "out/mine.txt" already exists; --overwrite replaces existing files',
        traceback: null,
      },
    ])
    expect(refused.code).toBe(2)
    const filesBelow = (): string[] => readdirSync(save, { recursive: true }).map(String).toSorted()
    expect([filesBelow(), readFileSync(join(save, 'out/mine.txt'), 'utf8')]).toEqual([['out', 'out/mine.txt'], 'mine'])
    const replaced = await cli.run([...args, '--overwrite'], { input: script })
    expect([replaced.code, lastLine(replaced).warnings]).toEqual([0, []])
    expect(filesBelow()).toEqual(['out', 'out/mine.txt', 'out/other.txt'])
    expect(readFileSync(join(save, 'out/mine.txt'), 'utf8')).toBe('the script')
  })

  test('saving makes no bare repository, whose configuration Git obeys, without --overwrite', async () => {
    const save = join(cli.directory, 'bare')
    const script = [
      'import os',
      'for path in ("a.txt", "in/HEAD", "in/config", "in/objects/a", "in/refs/a"):',
      '    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)',
      '    open(path, "w").write("ref: refs/heads/main")',
    ].join('\n')
    const args = ['run', '-', '--json', '--collect', '**', '--save', save]
    const refused = await cli.run(args, { input: script })
    expect(lastLine(refused).warnings?.map(({ code, message }) => [code, message])).toEqual([
      [
        'not_saved',
        'nothing was saved, because "in" is or would become a repository, whose files tools obey; --overwrite allows it',
      ],
    ])
    expect([refused.code, readdirSync(save)]).toEqual([2, []])
    expect((await cli.run([...args, '--overwrite'], { input: script })).code).toBe(0)
    expect(readdirSync(join(save, 'in')).toSorted()).toEqual(['HEAD', 'config', 'objects', 'refs'])
  })

  test('saving does not follow links and writes nothing outside the directory', async () => {
    const save = join(cli.directory, 'linked')
    const outside = join(cli.directory, 'outside')
    mkdirSync(save)
    mkdirSync(outside)
    const target = cli.file('target.txt', 'untouched')
    symlinkSync(outside, join(save, 'folder'))
    symlinkSync(target, join(save, 'file.txt'))
    const ended = await cli.run(['run', '-', '--json', '--collect', '**', '--save', save, '--overwrite'], {
      input: 'import os\nos.mkdir("folder")\nopen("folder/a", "w").write("a")\nopen("file.txt", "w").write("new")',
    })
    const { status, warnings } = lastLine(ended)
    expect(status).toBe('step-done')
    expect(warnings?.map(({ code, message }) => [code, message.includes('is a link or a file')])).toEqual([
      ['not_saved', true],
    ])
    expect([readdirSync(outside), readFileSync(target, 'utf8')]).toEqual([[], 'untouched'])
    expect(readFileSync(join(save, 'file.txt'), 'utf8')).toBe('new')
    expect(ended.code).toBe(2)
    expect(existsSync(join(save, 'folder/a'))).toBe(false)
  })
})
