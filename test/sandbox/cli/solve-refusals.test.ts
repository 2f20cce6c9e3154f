import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { lastLine } from '../../support/cli/sandglass.ts'
import { makeSolveCommand } from './solve-command.ts'

const command = makeSolveCommand()
afterAll(() => command[Symbol.dispose]())
const { cli, solve, right: RIGHT } = command

describe('sandglass solve refuses before anything starts', () => {
  const nothing = cli.file('nothing.ts', 'export const answer = 42')
  const wrong = cli.file('wrong.ts', 'export default 42')
  const throws = cli.file('throws.ts', 'throw new Error("no licence")')
  test.concurrent.each<[string[], string]>([
    [[], 'solve needs a TASK, or - for stdin; see sandglass solve --help'],
    [
      ['How', 'many?', '--model', RIGHT],
      'solve takes one TASK, but also got "many?"; quote a task that contains spaces',
    ],
    [['  ', '--model', RIGHT], 'the task is empty; describe what the script must do'],
    [['x'], 'solve needs --model MODEL: a name, replay:FILE or a module; see sandglass solve --help'],
    [
      ['x', '--model', 'gpt-5-mini'],
      '--model gpt-5-mini: OPENAI_API_KEY is not set; set it, name another address with --model-url',
    ],
    [['x', '--model', 'a', '--model-url', 'ftp://h'], '--model-url: url "ftp://h" is not an http or https address'],
    [
      ['x', '--model', 'a', '--model-url', 'http://me:pw@h'],
      '--model-url: the address must not contain a name or password',
    ],
    [
      ['x', '--model', RIGHT, '--model-url', 'http://h'],
      `--model-url belongs to a model that is named, and --model ${RIGHT} is a module`,
    ],
    [['x', '--model', '/nonexistent/m.ts'], '--model /nonexistent/m.ts: there is no such file\n'],
    [
      ['x', '--model', './model', '--model-url', 'http://127.0.0.1:1'],
      '--model ./model: it is a path, not the name of a model. Did you mean replay:./model, or a module that ends in .ts or .js?',
    ],
    [
      ['x', '--model', join(cli.directory, 'right')],
      `--model ${cli.directory}/right: it is a path, not the name of a model. Did you mean ${RIGHT}?`,
    ],
    [
      ['x', '--model', 'package.json'],
      '--model package.json: it is a file, not the name of a model. Did you mean replay:',
    ],
    [
      ['x', '--model', nothing],
      `--model ${nothing}: it exports no model; export default async (prompt) => ({ text: '…' })`,
    ],
    [['x', '--model', wrong], `--model ${wrong}: model: must be an async function from a prompt to { text }`],
    [['x', '--model', throws], `--model ${throws}: it cannot be loaded: line 1: no licence`],
    [
      ['x', '--model', RIGHT, '--output', '/nonexistent/schema.json'],
      'cannot read --output /nonexistent/schema.json: ENOENT',
    ],
    [['x', '--model', RIGHT, '--output', nothing], `--output ${nothing}: it is not JSON: `],
    [['x', '--model', RIGHT, '--output', '{"type":'], '--output: it is not JSON: '],
    [['x', '--model', RIGHT, '--output', '{"type":"nubmer"}'], '--output: the schema is not a valid JSON Schema: '],
    [['x', '--model', RIGHT, '--review', 'maybe'], '--review: "maybe" is neither always nor never'],
    [
      ['x', '--model', RIGHT, '--review', 'always'],
      '--review always needs a terminal, or --json and decisions on stdin',
    ],
    [['-', '--model', RIGHT, '--review', 'always'], '--review always reads decisions from stdin: '],
    [['x', '--model', RIGHT, '--allow-module', 'os path'], '--allow-module: "os path" is not the name of a module'],
    [['x', '--model', 'replay:/nonexistent'], '--model replay:/nonexistent: /nonexistent cannot be read: ENOENT'],
    [['x', '--model', RIGHT, '--record', '/nonexistent/r'], '--record /nonexistent/r: ENOENT'],
    [
      ['x', '--model', RIGHT, '--max-steps', '2'],
      '--max-steps needs --interactive; to limit retries, use --max-retries',
    ],
    [['x', '--model', RIGHT, '--session'], '--session needs --interactive'],
    [['x', '--model', RIGHT, '--interactive', '--on-error', 'keep'], '--on-error needs --session'],
    [
      ['x', '--model', RIGHT, '--interactive', '--session', '--on-error', 'x'],
      '--on-error: "x" is neither keep nor rollback',
    ],
    [['x', '--model', RIGHT, '--max-retries', '-1'], '--max-retries needs a value: --max-retries N'],
    [['x', '--model', RIGHT, '--budget-seconds', '0'], '--budget-seconds: 0 is not a number of seconds from 0.001 to'],
    [['x', '--model', RIGHT, '--budget-cost', '1'], '--budget-cost needs --pricing FILE'],
    [['x', '--model', RIGHT, '--pricing', '/nowhere.json'], 'cannot read --pricing: ENOENT'],
    [['x', '--model', RIGHT, '--budget-tokens', '1.5'], '--budget-tokens: "1.5" is not a whole number from 1 to'],
    [['x', '--model', RIGHT, '--input', 'a b=1'], '--input a b: "a b" is not a Python identifier'],
    [['x', '--model', RIGHT, '--input', 'class=1'], '--input class: "class" is a keyword of Python'],
    [
      ['x', '--model', RIGHT, `--journal=${'x'.repeat(5000)}`],
      `--journal ${'x'.repeat(200)}…: it cannot be inspected: `,
    ],
    [
      ['x', '--model', RIGHT, '--journal', nothing],
      `--journal ${nothing}: it is a file; a journal is a directory, or a SQLite file`,
    ],
    [['x', '--modle', RIGHT], 'no flag --modle. Did you mean "--model"?'],
  ])('solve %j', async (args, message) => {
    const ended = await solve('refusals', args)
    expect([ended.code, ended.stdout]).toEqual([2, ''])
    expect(ended.stderr).toContain(`sandglass: ${message}`)
    expect(ended.stderr).not.toContain('pw@')
    expect(existsSync(join(cli.directory, 'refusals'))).toBe(false)
  })

  test.each([
    ['/proc/1/foo', '/proc/1/foo cannot be created: ENOENT'],
    ['/proc', 'ENOENT (open)'],
    ['/etc/passwd/runs', '/etc/passwd is not a directory'],
  ])('a journal in %s, which is not writable, exits with 8', async (place, reason) => {
    const ended = await solve('unwritable', ['x', '--model', RIGHT, '--journal', place, '--json'])
    expect([ended.code, lastLine(ended)]).toMatchObject([
      8,
      { type: 'error', code: 'journal_unusable', error: `the journal ${place} cannot be used: ${reason}` },
    ])
  })

  test('a signal before the sandbox is ready is reported in plain words, and exits with 130', async () => {
    const model = cli.file('ends.ts', 'process.kill(process.pid, "SIGTERM")\nexport default async () => ({ text: "" })')
    const ended = await solve('early', ['x', '--model', model])
    expect([ended.code, ended.stdout, ended.stderr]).toEqual([130, '', 'sandglass: cancelled by SIGTERM\n'])
  })

  test('without an engine exits with 8', async () => {
    const args = ['x', '--model', RIGHT, '--engine', 'local', '--json']
    const ended = await solve('no-engine', args, { PATH: '/nonexistent' })
    expect([ended.code, lastLine(ended).code]).toEqual([8, 'bubblewrap_missing'])
  })
})
