import { afterAll, describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { lastLine, linesOf, makeCli } from '../../support/cli/sandglass.ts'
import { libraryOfCli } from '../../support/cli/program.ts'

const { skip } = await requireLocalEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

const TOOLS = cli.file(
  'tools.ts',
  `import { defineTool } from ${JSON.stringify(libraryOfCli())}
export default [defineTool({
  name: 'search', description: 'Finds orders.', effect: 'read',
  input: { type: 'object', properties: { status: { type: 'string' } }, required: ['status'], additionalProperties: false },
  execute: () => [],
})]`,
)
const WRONG = "import jsn\norders = search(state='late')\nif orders:\n\temit_resul(orders)\n"
const RIGHT = 'emit_result(search(status="late"))\n'
const VIOLATIONS = [
  {
    code: 'unknown_module',
    line: 1,
    column: 0,
    message: "there is no module 'jsn' in the sandbox",
    hint: 'Did you mean import json?',
  },
  {
    code: 'unknown_argument',
    line: 2,
    column: 16,
    message: "search() has no parameter 'state'",
    hint: "search() takes status. Write status='late' in place of state='late'.",
  },
  {
    code: 'unknown_name',
    line: 4,
    column: 1,
    message: "'emit_resul' is not defined",
    hint: 'Did you mean emit_result(data=None)?',
  },
]

/** The report on {@link WRONG}, in the form of a compiler. */
function expectedReport(path: string): string {
  return `${path}:1:1: error[unknown_module]: there is no module 'jsn' in the sandbox
  1 | import jsn
    | ^
    = hint: Did you mean import json?

${path}:2:17: error[unknown_argument]: search() has no parameter 'state'
  2 | orders = search(state='late')
    |                 ^
    = hint: search() takes status. Write status='late' in place of state='late'.

${path}:4:2: error[unknown_name]: 'emit_resul' is not defined
  4 | \temit_resul(orders)
    | \t^
    = hint: Did you mean emit_result(data=None)?

`
}

describe.skipIf(skip)('sandglass check', () => {
  test('--json prints the violations and nothing else, and exits with 3', async () => {
    const ended = await cli.run(['check', cli.file('wrong.py', WRONG), '--json', '--tools', TOOLS])
    expect(ended).toEqual({
      code: 3,
      stdout: `${JSON.stringify({ ok: false, violations: VIOLATIONS })}\n`,
      stderr: '',
    })
  })

  test('--json of a script without mistakes exits with 0', async () => {
    const ended = await cli.run(['check', '-', '--json', '--tools', TOOLS], { input: RIGHT })
    expect(ended).toEqual({ code: 0, stdout: '{"ok":true,"violations":[]}\n', stderr: '' })
  })

  test('knows the parameters of Python tools, with policy strict too', async () => {
    const index = JSON.stringify(libraryOfCli())
    const source = `'def half(n: int, *, up=False):\\n    "Half of a number."\\n'`
    const tools = cli.file(
      'python.ts',
      `import { definePythonTool } from ${index}\nexport const half = definePythonTool({ source: ${source} })`,
    )
    const [right, wrong] = await Promise.all([
      cli.run(['check', '-', '--tools', tools, '--policy', 'strict'], { input: 'emit_result(half(3, up=True))' }),
      cli.run(['check', '-', '--json', '--tools', tools], { input: 'emit_result(half(3, True))' }),
    ])
    expect(right).toEqual({ code: 0, stdout: '<stdin>: no violations\n', stderr: '' })
    const violation = {
      code: 'too_many_arguments',
      line: 1,
      column: 20,
      message: 'half() takes at most 1 argument by position, not 2',
      hint: 'Write half(n, up=False).',
    }
    expect(JSON.parse(wrong.stdout)).toEqual({ ok: false, violations: [violation] })
  })

  test('shows place, line and hint of each violation as text', async () => {
    const file = cli.file('shown.py', WRONG)
    const [ofFile, ofStdin] = await Promise.all([
      cli.run(['check', file, '--tools', TOOLS]),
      cli.run(['check', '-', '--tools', TOOLS], { input: WRONG }),
    ])
    expect(ofFile).toEqual({ code: 3, stdout: `${expectedReport(file)}3 violations; nothing was run\n`, stderr: '' })
    expect(ofStdin).toEqual({
      code: 3,
      stdout: `${expectedReport('<stdin>')}3 violations; nothing was run\n`,
      stderr: '',
    })
  })

  test('puts the marker below the wrong character, whatever precedes it', async () => {
    const ended = await cli.run(['check', '-'], { input: `a = "\u001B]0;é\u0007" + nope\r\n` })
    expect(ended).toEqual({
      code: 3,
      stdout: `<stdin>:1:16: error[unknown_name]: 'nope' is not defined
  1 | a = "\\x1b]0;é\\x07" + nope
    |                      ^
    = hint: Did you mean None?

1 violation; nothing was run
`,
      stderr: '',
    })
  })

  test('says that a script has no mistakes', async () => {
    const ended = await cli.run(['check', '-', '--tools', TOOLS], { input: RIGHT })
    expect(ended).toEqual({ code: 0, stdout: '<stdin>: no violations\n', stderr: '' })
  })

  test('knows inputs, the mode and the policy', async () => {
    const script = 'import os\nprint(limit)\n'
    const [standard, strict] = await Promise.all([
      cli.run(['check', '-', '--json', '--input', 'limit=3'], { input: script }),
      cli.run(['check', '-', '--json', '--input', 'limit', '--policy', 'strict', '--mode', 'plan'], { input: script }),
    ])
    const codes = ({ stdout }: { stdout: string }): string[] =>
      (JSON.parse(stdout) as { violations: { code: string }[] }).violations.map(({ code }) => code)
    expect([codes(standard), codes(strict).toSorted()]).toEqual([[], ['forbidden_import', 'no_result']])
  })
})

describe.skipIf(skip)('a run with --policy', () => {
  test('of a script with mistakes runs nothing, reports them and exits with 3', async () => {
    const script = `print("ran")\n${WRONG}`
    const file = cli.file('rejected.py', WRONG)
    const [people, json] = await Promise.all([
      cli.run(['run', file, '--policy', 'standard', '--tools', TOOLS]),
      cli.run(['run', '-', '--json', '--policy', 'standard', '--tools', TOOLS], { input: script }),
    ])
    const reason = "the script was rejected before it ran: line 1: there is no module 'jsn' in the sandbox (and 2 more)"
    expect(people).toEqual({ code: 3, stdout: '', stderr: `${expectedReport(file)}[rejected] ${reason}\n` })
    expect([json.code, lastLine(json)]).toMatchObject([
      3,
      {
        status: 'rejected',
        success: false,
        error_kind: 'validation',
        has_result: false,
        error: reason.replace('line 1', 'line 2'),
        stdout: '',
        violations: VIOLATIONS.map((violation) => ({ ...violation, line: violation.line + 1 })),
        tool_calls: [],
        ending: { cause: 'not-started', exit_code: null, signal: null, by: 'host' },
      },
    ])
  })

  test('of a script without mistakes runs it', async () => {
    const ended = await cli.run(['run', '-', '--policy', 'strict', '--tools', TOOLS], { input: RIGHT })
    expect([ended.code, ended.stdout]).toEqual([0, '[]\n'])
  })

  test('in a batch: the policy of a line overrides the flag', async () => {
    const requests = [
      { id: 'flag', script: 'emit_result(undefined_name)' },
      { id: 'line', script: 'emit_result(eval("1 + 1"))', policy: 'strict' },
      { id: 'off', script: 'emit_result(eval("1 + 1"))', policy: 'off' },
    ]
    const input = requests.map((request) => `${JSON.stringify(request)}\n`).join('')
    const ended = await cli.run(['batch', '--policy', 'standard'], { input })
    const answers = linesOf(ended).map(({ id, status, violations = [] }) => [
      id,
      [status, ...violations.map(({ code }) => code)],
    ])
    expect(Object.fromEntries(answers)).toEqual({
      flag: ['rejected', 'unknown_name'],
      line: ['rejected', 'forbidden_name'],
      off: ['completed'],
    })
    expect(ended.code).toBe(0)
  })
})
