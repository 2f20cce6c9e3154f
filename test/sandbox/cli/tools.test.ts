import { afterAll, describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { lastLine, linesOf, makeCli } from '../../support/cli/sandglass.ts'
import { libraryOfCli } from '../../support/cli/program.ts'

const { skip } = await requireLocalEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

const SANDGLASS = JSON.stringify(libraryOfCli())
const AI = JSON.stringify(import.meta.resolve('ai'))

/** Writes a module with tools into the directory of the test; returns its path. */
function moduleOf(name: string, source: string): string {
  return cli.file(
    name,
    `import { definePythonTool, defineTool, ToolCallError, ToolRegistry } from ${SANDGLASS}\n${source}`,
  )
}

const DOUBLE = `defineTool({
  name: 'double', description: 'Twice a number.', effect: 'read',
  input: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false },
  output: { type: 'integer' },
  execute: ({ n }) => 2 * n,
})`
const REFUND = `defineTool({
  name: 'refund-order', description: 'Pays back.',
  input: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
  execute: ({ id }) => { throw new ToolCallError('already_refunded', id + ' was refunded before') },
})`
const HALVE = `definePythonTool({ source: 'def halve(n):\\n    "Half of a number."\\n    return n // 2\\n' })`
const TRIPLE = `tool({
  description: 'Three times a number.',
  inputSchema: jsonSchema({ type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }),
  execute: ({ n }) => 3 * n,
})`

describe.skipIf(skip)('sandglass run --tools', () => {
  test('--max-tool-wait bounds the time by which a slow tool moves the timeout (EX-08)', async () => {
    const tools = moduleOf(
      'slow.ts',
      `export default defineTool({ name: 'slow', description: '', input: { type: 'object' },
        execute: () => new Promise((done) => setTimeout(() => done(1), 4500)) })`,
    )
    const args = ['run', '-', '--json', '--tools', tools, '--timeout', '4']
    const [waited, ended] = await Promise.all(
      [[], ['--max-tool-wait', '0']].map((flags) => cli.run([...args, ...flags], { input: 'emit_result(slow())' })),
    )
    expect([waited?.code, ended?.code]).toEqual([0, 4])
  })

  test.each<[string, string, string, unknown]>([
    ['a list as default export', `export default [${DOUBLE}]`, 'double(21)', 42],
    ['one tool as default export', `export default ${DOUBLE}`, 'double(21)', 42],
    ['a list that is called tools', `export const tools = [${DOUBLE}]`, 'double(n=21)', 42],
    ['each export that is a tool', `export const a = ${DOUBLE}\nexport const other = 1`, 'double(21)', 42],
    ['a function', `export default async () => [${DOUBLE}]`, 'double(21)', 42],
    ['a Python tool', `export default ${HALVE}`, 'halve(n=84)', 42],
    ['exports of both kinds', `export const a = ${HALVE}\nexport const b = ${DOUBLE}`, 'halve(double(42))', 42],
    [
      'a registry of both kinds',
      `export default new ToolRegistry().register(${HALVE}).register(${DOUBLE})`,
      'double(halve(42))',
      42,
    ],
    ['a registry', `export default new ToolRegistry().register(${DOUBLE})`, 'double(21)', 42],
    [
      'a tool set of the AI SDK',
      `import { jsonSchema, tool } from ${AI}\nexport default { triple: ${TRIPLE} }`,
      'triple(7)',
      21,
    ],
    [
      'exports that are tools of the AI SDK',
      `import { jsonSchema, tool } from ${AI}\nexport const triple = ${TRIPLE}`,
      'triple(7)',
      21,
    ],
  ])('takes %s', async (what, source, call, expected) => {
    const file = moduleOf(`${what.replaceAll(' ', '-')}.ts`, source)
    const ended = await cli.run(['run', '-', '--json', '--tools', file], { input: `emit_result(${call})` })
    expect([ended.stderr, ended.code, lastLine(ended).final_data]).toEqual(['', 0, expected])
  })

  test('lists each call with its arguments and its outcome in the result line', async () => {
    const file = moduleOf('listed.ts', `export default [${DOUBLE}, ${REFUND}]`)
    const script =
      'try:\n    refund_order("A-1")\nexcept ToolError as error:\n    emit_result([double(4), error.code, str(error)])'
    const ended = await cli.run(['run', '-', '--json', '--tools', file], { input: script })
    const line = lastLine(ended)
    expect(line.final_data).toEqual([8, 'already_refunded', 'A-1 was refunded before'])
    expect(line.tool_calls).toEqual([
      {
        name: 'refund_order',
        effect: 'write',
        args: { id: 'A-1' },
        state: 'failed',
        ok: false,
        ms: expect.any(Number) as number,
        error: { code: 'already_refunded', message: 'A-1 was refunded before' },
      },
      {
        name: 'double',
        effect: 'read',
        args: { n: 4 },
        state: 'answered',
        ok: true,
        ms: expect.any(Number) as number,
        error: null,
      },
    ])
    expect(ended.stderr).toBe(`sandglass: --tools ${file}: scripts call "refund-order" by the name refund_order\n`)
  })

  test('prints calls and their outcomes as events', async () => {
    const file = moduleOf('events.ts', `export default [${DOUBLE}]`)
    const ended = await cli.run(['run', '-', '--events', '--tools', file], { input: 'emit_result(double(4))' })
    const lines = linesOf(ended)
    const call = { v: 1, execution_id: lines.at(-1)?.execution_id, id: expect.any(String) as string, name: 'double' }
    expect(lines.slice(1, 3)).toEqual([
      { ...call, type: 'tool_call', effect: 'read', args: { n: 4 }, line: 1 },
      { ...call, type: 'tool_result', ok: true, ms: expect.any(Number) as number, error: null },
    ])
    expect(lines[1]?.id).toBe(lines[2]?.id)
    expect(lines.map(({ type }) => type)).toEqual(['started', 'tool_call', 'tool_result', 'final_result', 'result'])
  })

  test('prints each call on stderr without --json', async () => {
    const file = moduleOf('people.ts', `export default [${DOUBLE}]`)
    const script = 'try:\n    double("x")\nexcept ToolError:\n    emit_result(double(4))'
    const { stdout, stderr } = await cli.run(['run', '-', '--tools', file], { input: script })
    expect(stdout).toBe('8\n')
    expect(stderr.replaceAll(/\d+\.\d ms/g, '0.0 ms')).toBe(
      '[tool] double {"n":"x"} 0.0 ms, invalid_arguments: double: n: expected integer, got "x"\n' +
        '[tool] double {"n":4} 0.0 ms\n',
    )
  })

  test.each<[string, string, string]>([
    ['cannot be loaded', 'throw new Error("no key")', 'it cannot be loaded: line 2: no key'],
    [
      'is wrong TypeScript',
      'const a = 1\nenum Way { Out }',
      'it cannot be loaded: line 3: TypeScript enum is not supported in strip-only mode',
    ],
    ['exports no tools', 'export const answer = 42', 'it exports no tools; export default [defineTool({ … })]'],
    ['exports an empty list', 'export default []', 'it exports no tools; export default [defineTool({ … })]'],
    [
      'has a function that throws',
      'export default () => { throw new Error("later") }',
      'its function for tools threw: later',
    ],
    [
      'has two tools for one name',
      `export default [${DOUBLE}, { ...${DOUBLE} }]`,
      'tools: "double" and "double" would both become the function double; rename one',
    ],
    [
      'has a Python tool whose file is missing',
      'export default [definePythonTool({ file: "/nowhere/clean.py" })]',
      "it cannot be loaded: line 2: definePythonTool: the file /nowhere/clean.py cannot be read: ENOENT: no such file or directory, open '/nowhere/clean.py'",
    ],
    ['exports something else', 'export default 42', 'tools: expected a list of tools or a tool set'],
    [
      'has an item that is no tool',
      'export default [{ name: "x" }]',
      'tools: "x" is not a tool; make it with defineTool, the AI SDK or LangChain',
    ],
  ])('refuses a module that %s, before anything starts', async (what, source, problem) => {
    const file = moduleOf(`${what.replaceAll(' ', '-')}.ts`, source)
    const ended = await cli.run(['run', '-', '--json', '--tools', file], { input: 'emit_result(1)' })
    const message = `--tools ${file}: ${problem}`
    expect([ended.code, ended.stderr, lastLine(ended).error]).toEqual([2, `sandglass: ${message}\n`, message])
  })
})

test.skipIf(skip)('sandglass batch --tools gives the tools to every request', async () => {
  const file = moduleOf('batch.ts', `export default [${DOUBLE}]`)
  const requests = [1, 2].map((n) => `${JSON.stringify({ id: `r${n}`, script: `emit_result(double(${n}))` })}\n`)
  const ended = await cli.run(['batch', '--tools', file], { input: requests.join('') })
  const answers = linesOf(ended).map(({ id, final_data: data, tool_calls: calls }) => [
    id,
    { data, calls: calls?.length },
  ])
  expect(Object.fromEntries(answers)).toEqual({ r1: { data: 2, calls: 1 }, r2: { data: 4, calls: 1 } })
})
