import { afterAll, describe, expect, test } from 'vitest'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { libraryOfCli } from '../../support/cli/program.ts'
import { linesOf, makeCli } from '../../support/cli/sandglass.ts'
import { runAtTerminal, screenOf, startAtTerminal } from '../../support/cli/terminal.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const { skip } = await requireLocalEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

/** The prompt on a line of its own, after a line that was typed. */
const PROMPT = '\n\u001B[1G\u001B[0J>>> '
const SIDE = PROMPT.replace('>', 'side>')
const CONVERSATION = `Python whose variables survive a crash. :help shows the commands, Ctrl-D ends.
>>> numbers = [3, 1, 2]
>>> for n in numbers:
...     print(n)
... 
3
1
2
>>> numbers[0]
3
>>> :checkpoint one
checkpoint one (whole)
>>> :branch side
side>>> numbers.append(9); len(numbers)
4
side>>> :checkpoint
checkpoint c1 (whole)
side>>> :branches
  main: checkpoints one
* side: checkpoints c1
side>>> :restore one
sandglass: the checkpoint "one" is of the branch "main", not of "side"
side>>> :switch main
>>> numbers
[3, 1, 2]
>>> numbers.clear(); import os; os._exit(1)
the script's process ended with exit code 1 before the script was done
sandglass: the state is as it was before this cell
>>> :vars
numbers  list  3  N bytes
n        int      N bytes
>>> display({"image/png": "${PNG}"}, raw=True)
[image/png]
saved cell-6-display-1.png
>>> print("no end", end="")
no end
>>> 1 / 0
Traceback (most recent call last):
  File "<cell 8>" …
ZeroDivisionError: division by zero
>>> numbers
[3, 1, 2]
>>> :restore
:restore needs a NAME; :branches lists them
>>> :checkpoint one (more
:checkpoint takes one NAME, without spaces
>>> :vars all
:vars takes no NAME
>>> :what
there is no command :what
HELP
>>> :chekpoint two
there is no command :chekpoint. Did you mean ":checkpoint"?
>>> :branch one
sandglass: there is a checkpoint "one" already
>>> :drop side
>>> :branches
* main: checkpoints one
>>> :drop one
>>> :branches
* main: no checkpoints
>>> emit_log("half way"); emit_intermediate("half", {"n": 2}); emit_result({"a": 41})
[info] half way
[intermediate] half: {"n":2}
{
  "a": 41
}
>>> emit_result("no end")
no end
>>> ([)
  File "<cell 12>", line 1
    ([)
      ^
SyntaxError: closing parenthesis ')' does not match opening parenthesis '['
>>> # note: s is next
>>> s = ["""
...   a
... """,
...     1,
... ]
>>> s
['\\n  a\\n', 1]
>>> if s: print("yes")
... else: print("no")
... 
yes
>>> 
`
const INTERRUPTED = `Python whose variables survive a crash. :help shows the commands, Ctrl-D ends.
>>> y = 1; import time; print("begun"); time.sleep(50)
begun
KeyboardInterrupt
>>> y
1
>>> while True:
...     try: y = 2; print("again"); time.sleep(50)
...     except KeyboardInterrupt: print("no")
... 
again
no
again
the run was cancelled
sandglass: the state is as it was before this cell
>>> y
1
>>> not finished(
... 
>>> :quit
`
describe.skipIf(skip)('sandglass repl', () => {
  test('at a terminal: blocks, completion, history, errors, emitted data, branches with their checkpoints, and pictures in files', async () => {
    const saved = join(cli.directory, 'saved')
    const ended = await runAtTerminal(
      cli,
      ['repl', '--engine', 'local', '--save', saved],
      [
        ['>>> ', 'numbers = [3, 1, 2]\n'],
        ['>>> ', 'for n in numbers:\n'],
        ['... ', '    print(n)\n'],
        ['... ', '\n'],
        [PROMPT, 'num\t'],
        ['numbers', '[0]\n'],
        [PROMPT, ':checkpoint one\n'],
        [PROMPT, ':branch side\n'],
        [SIDE, 'numbers.append(9); len(numbers)\n'],
        [SIDE, ':checkpoint\n'],
        [SIDE, ':branches\n'],
        [SIDE, ':restore one\n'],
        [SIDE, ':switch main\n'],
        [PROMPT, 'numbers\n'],
        [PROMPT, 'numbers.clear(); import os; os._exit(1)\n'],
        [PROMPT, ':vars\n'],
        [PROMPT, `display({"image/png": "${PNG}"}, raw=True)\n`],
        [PROMPT, 'print("no end", end="")\n'],
        [PROMPT, '1 / 0\n'],
        [PROMPT, `${'\u001B[A'.repeat(6)}\n`],
        [PROMPT, ':restore\n'],
        [PROMPT, ':checkpoint one (more\n'],
        [PROMPT, ':vars all\n'],
        [PROMPT, ':what\n'],
        [PROMPT, ':chekpoint two\n'],
        [PROMPT, ':branch one\n'],
        [PROMPT, ':drop side\n'],
        [PROMPT, ':branches\n'],
        [PROMPT, ':drop one\n'],
        [PROMPT, ':branches\n'],
        [PROMPT, 'emit_log("half way"); emit_intermediate("half", {"n": 2}); emit_result({"a": 41})\n'],
        [PROMPT, 'emit_result("no end")\n'],
        [PROMPT, '([)\n'],
        [PROMPT, '# note: s is next\n'],
        [PROMPT, 's = ["""\n'],
        ['... ', '  a\n'],
        ['... ', '""",\n'],
        ['... ', '    1,\n'],
        ['... ', ']\n'],
        [PROMPT, 's\n'],
        [PROMPT, 'if s: print("yes")\n'],
        ['... ', 'else: print("no")\n'],
        ['... ', '\n'],
        [PROMPT, '\u0004'],
      ],
    )
    expect(ended.code).toBe(0)
    const shown = screenOf(ended.stdout)
      .replace(/(File "<cell \d+>")[^]*?(?=ZeroDiv)/, '$1 …\n')
      .replace(/^:checkpoint \[NAME\][^]*? cell\.\n/m, 'HELP\n')
      .replaceAll(/\d+ bytes/g, 'N bytes')
    expect(shown).toBe(CONVERSATION)
    expect(readdirSync(saved)).toEqual(['cell-6-display-1.png'])
  })

  test('at a terminal, each call of a tool is a line, as of run', async () => {
    const tools = cli.file(
      'tools.ts',
      `import { defineTool } from ${JSON.stringify(libraryOfCli())}
export default [defineTool({
  name: 'double', description: 'Twice a number.', effect: 'read',
  input: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
  execute: ({ n }) => 2 * n,
})]`,
    )
    const ended = await runAtTerminal(
      cli,
      ['repl', '--engine', 'local', '--tools', tools],
      [
        ['>>> ', 'double(n=4)\n'],
        [PROMPT, 'double(n="x")\n'],
        [PROMPT, ':quit\n'],
      ],
    )
    const shown = screenOf(ended.stdout).replaceAll(/ \d+\.\d ms/g, ' N ms')
    expect(shown).toContain('>>> double(n=4)\n[tool] double {"n":4} N ms\n8\n>>> double(n="x")\n')
    expect(shown).toContain(
      '\n[tool] double {"n":"x"} N ms, invalid_arguments: double: n: expected integer, got "x"\nTraceback ',
    )
  })

  test('at a terminal, Ctrl-C interrupts a cell whose changes stay, and a second one ends it', async () => {
    const ended = await runAtTerminal(
      cli,
      ['repl', '--engine', 'local'],
      [
        ['>>> ', 'y = 1; import time; print("begun"); time.sleep(50)\n'],
        ['\nbegun', '\u0003'],
        [PROMPT, 'y\n'],
        [PROMPT, 'while True:\n'],
        ['... ', '    try: y = 2; print("again"); time.sleep(50)\n'],
        ['... ', '    except KeyboardInterrupt: print("no")\n'],
        ['... ', '\n'],
        ['\nagain', '\u0003'],
        ['no\r\nagain', '\u0003'],
        [PROMPT, 'y\n'],
        [PROMPT, 'not finished(\n'],
        ['... ', '\u0003'],
        [PROMPT, ':quit\n'],
      ],
    )
    expect(ended.code).toBe(0)
    expect(screenOf(ended.stdout).replace(/Traceback[^]*?(?=KeyboardInterrupt\n)/, '')).toBe(INTERRUPTED)
  })

  test('SIGTERM ends it while it waits for a request or a line', async () => {
    const lines = cli.start(['repl', '--json', '--engine', 'local'])
    lines.child.stdin.write(`${JSON.stringify({ id: '1', cell: '1' })}\n`)
    await lines.said('"id":"1"')
    lines.child.kill('SIGTERM')
    const ended = await lines.ended
    expect(ended).toMatchObject({ code: 130, stderr: 'sandglass: cancelled by SIGTERM\n' })
    expect(linesOf(ended)).toMatchObject([{ id: '1' }, { type: 'error', status: 'cancelled', code: 'aborted' }])

    const person = startAtTerminal(cli, ['repl', '--engine', 'local'], [])
    await person.said('>>> ')
    const pid = person.child.pid ?? 0
    process.kill(Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')), 'SIGTERM')
    const left = await person.ended
    expect(left.code).toBe(130)
    expect(screenOf(left.stdout)).toMatch(/\n>>> \nsandglass: cancelled by SIGTERM\n$/)
  })
})
