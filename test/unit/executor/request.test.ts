import { createContext, runInContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { SandglassError } from '../../../src/errors/index.ts'
import { ScriptExecutor, type SandboxRunRequest } from '../../../src/executor/index.ts'
import { replayChannel } from '../../../src/testing/index.ts'
import { done, play } from './wire.ts'

type Fields = Readonly<Record<string, unknown>>

/** The message of a request that is refused before anything is sent. */
async function refusal(fields: Fields): Promise<string> {
  const sandbox = replayChannel([])
  const request = { sandbox, script: 'x', ...fields } as unknown as SandboxRunRequest
  try {
    return `it ran: ${(await new ScriptExecutor().run(request)).status}`
  } catch (error) {
    const clean = sandbox.sent.length === 0 && !sandbox.destroyed
    if (!clean || !(error instanceof SandglassError) || error.code !== 'invalid_request') throw error
    return error.message
  }
}

const own = (name: string, value: unknown): object => Object.fromEntries([[name, value]])
const nest = (levels: number): unknown => {
  let value: unknown = 1
  for (let level = 0; level < levels; level += 1) value = [value]
  return value
}

describe('the request itself', () => {
  test.each([
    [{ script: undefined }, 'script: undefined is not a string'],
    [{ script: Buffer.from('x') }, 'script: an object is not a string'],
    [{ sandbox: null }, 'sandbox: null is not a sandbox'],
    [{ signal: {} }, 'signal: it is not an AbortSignal'],
  ])('%#', async (fields, named) => {
    expect(await refusal(fields)).toContain(named)
  })

  test('an invalid request', async () => {
    await expect(new ScriptExecutor().run(null as unknown as SandboxRunRequest)).rejects.toThrow(
      'request: null is not an object',
    )
  })
})

describe('secrets', () => {
  test('SEC-011: names that are not plain identifiers are refused together', async () => {
    const requiredSecrets = ['__proto__', 'constructor', 'A=B', 'A\nB', '../x', '', 'A B']
    expect(await refusal({ requiredSecrets })).toContain(String.raw`"__proto__", "A=B", "A\nB", "../x", "", "A B"`)
  })

  test('SEC-011: "constructor" is passed on as required and does not count as present', async () => {
    const { sandbox } = await play([done()], {
      request: { requiredSecrets: ['constructor', 'constructor'], secrets: {} },
    })
    expect(sandbox.sent).toMatchObject([{ required_secrets: ['constructor'], secrets: {} }])
  })

  test('inherited properties are not secrets', async () => {
    const secrets = Object.create({ INHERITED: 'value' }) as Record<string, string>
    const { sandbox } = await play([done()], { request: { secrets } })
    expect(sandbox.sent).toMatchObject([{ secrets: {} }])
  })

  test.each([
    '__proto__',
    '__X',
    'A=B',
    'A\nB',
    '',
    '1A',
    'ü',
    'LD_PRELOAD',
    'ld_library_path',
    'PYTHONPATH',
    'PYTHONINSPECT',
  ])('the name %j is refused in both places', async (name) => {
    expect(await refusal({ secrets: own(name, 'hidden-value') })).toContain('secrets: ')
    expect(await refusal({ requiredSecrets: [name] })).toContain('requiredSecrets: ')
  })

  test.each([
    [{ secrets: { A: 'a\0b' } }, 'secrets.A: its value holds a NUL'],
    [{ secrets: { A: 5 } }, 'secrets.A: its value is not a string'],
    [{ secrets: { A: '\ud800' } }, 'secrets.A: its value holds a lone surrogate'],
    [{ secrets: { A: 'x'.repeat(128 * 1024) } }, 'secrets.A: name and value exceed 131072 bytes'],
    [{ secrets: ['A'] }, 'secrets: an array'],
    [{ requiredSecrets: 'A' }, 'requiredSecrets: "A" is not an array'],
    [{ requiredSecrets: [5] }, 'requiredSecrets: '],
  ])('%#', async (fields, named) => {
    expect(await refusal(fields)).toContain(named)
  })

  test('messages never contain a value', async () => {
    const sandbox = replayChannel([])
    const run = new ScriptExecutor().run({ sandbox, script: 'x', secrets: { A: 'hidden\0value' } })
    await expect(run).rejects.toThrow(/^(?!.*hidden)/)
  })
})

describe('inputs', () => {
  const cyclic: unknown[] = []
  cyclic.push({ back: cyclic })

  test.each([
    [{ a: Number.NaN }, 'inputs.a: NaN is not a JSON value'],
    [{ a: [1, { b: Number.POSITIVE_INFINITY }] }, 'inputs.a[1].b: Infinity'],
    [{ a: { 'b c': 10n } }, 'inputs.a["b c"]: 10n is not a JSON value'],
    [{ a: () => 1 }, 'inputs.a: a function is not a JSON value'],
    [{ a: undefined }, 'inputs.a: undefined is not a JSON value'],
    [{ a: [, 1] }, 'inputs.a[0]: undefined is not a JSON value'], // eslint-disable-line no-sparse-arrays -- the hole is the case
    [{ a: Symbol('s') }, 'inputs.a: Symbol(s) is not a JSON value'],
    [{ a: new Date(0) }, 'inputs.a: an instance of Date is not a JSON value'],
    [{ a: new Map() }, 'inputs.a: an instance of Map'],
    [{ a: cyclic }, 'inputs.a[0].back: it contains itself'],
    [{ a: nest(201) }, 'nested deeper than 200 levels'],
    [{ a: { n: 2 ** 53 } }, 'inputs.a.n: 9007199254740992 is an integer beyond 2^53'],
    [{ a: -(2 ** 60) }, 'inputs.a: -1152921504606847000'],
    [{ 'a b': 1 }, 'inputs: "a b" is not a Python identifier'],
    [{ '1a': 1 }, 'inputs: "1a" is not a Python identifier'],
    [{ '': 1 }, 'inputs: "" is not a Python identifier'],
    [{ lambda: 1 }, 'inputs: "lambda" is a keyword of Python'],
    [{ emit_result: 1 }, 'inputs: "emit_result" is a function of every script'],
    [{ __builtins__: 1 }, 'inputs: "__builtins__" is refused'],
    [own('__proto__', 1), 'inputs: "__proto__" is refused'],
    [{ ﬁ: 1 }, 'inputs: "ﬁ" is written "fi" by Python'],
    [[1], 'inputs: an array'],
    ['x', 'inputs: "x"'],
  ])('%#', async (inputs, named) => {
    expect(await refusal({ inputs })).toContain(named)
  })

  test('JSON values are sent by value, whatever their class', async () => {
    const foreign: unknown = runInContext('({ a: [1] })', createContext())
    const shared = { s: 1 }
    const inputs = {
      match: 1,
      größe: 'ü',
      deep: nest(199),
      big: 2 ** 53 - 1,
      float: 1e300,
      tiny: 5e-324,
      foreign,
      data: {
        [`__proto__`]: 1,
        constructor: [null, false],
        shared: [shared, shared],
      },
    }
    const { sandbox } = await play([done()], { request: { inputs } })
    const [sent] = sandbox.sent
    expect(JSON.stringify(sent?.type === 'execute' && sent.inputs)).toBe(JSON.stringify(inputs))
    expect(JSON.stringify(inputs)).toContain('"__proto__":1')
  })

  test('a getter is read once', async () => {
    let reads = 0
    const inputs = {
      get a() {
        reads += 1
        return reads === 1 ? 1 : Number.NaN
      },
    }
    const { sandbox } = await play([done()], { request: { inputs } })
    expect(sandbox.sent).toMatchObject([{ inputs: { a: 1 } }])
  })
})

describe('files', () => {
  test.each([
    ['/etc/passwd', 'it is absolute'],
    ['../x', 'it has the part ".."'],
    ['a/../b', 'it has the part ".."'],
    ['a/..', 'it has the part ".."'],
    ['./a', 'it has the part "."'],
    ['a//b', 'it has an empty part'],
    ['a/', 'it has an empty part'],
    ['', 'it is empty'],
    ['a\0b', 'it holds a NUL'],
    ['\ud800', 'a lone surrogate'],
    ['x'.repeat(256), 'it has a part longer than 255 bytes'],
    ['漢/'.repeat(1200), 'it is longer than 4096 bytes'],
  ])('the path %j is refused, and as a glob too', async (path, problem) => {
    expect(await refusal({ files: own(path, 'x') })).toContain(problem)
    expect(await refusal({ collect: [path] })).toContain(problem)
  })

  test.each([
    [{ files: { a: 5 } }, 'files["a"]: 5 is not a file'],
    [{ files: { a: null } }, 'files["a"]: null is not a file'],
    [{ files: { a: { content: [1] } } }, 'files["a"].content: an array'],
    [{ files: { a: { content: 'x', mode: 0o1000 } } }, 'files["a"].mode: 512'],
    [{ files: { a: { content: 'x', mode: '644' } } }, 'files["a"].mode: "644"'],
    [{ files: { a: 'x', 'a/b/c': 'y' } }, '"a" is both a file and the folder of "a/b/c"'],
    [{ files: ['a'] }, 'files: an array'],
    [{ files: { a: Buffer.alloc(64 * 1024 * 1024), b: 'x' } }, 'files: 67108865 bytes; at most 67108864'],
    [{ files: Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`f${index}`, ''])) }, 'files: 1001 files'],
    [{ collectLimits: 5 }, 'collectLimits: 5 is not an object'],
    [{ collectLimits: { maxFiles: 0 } }, 'collectLimits.maxFiles: 0 is not a whole number from 1 to 100000'],
    [{ collectLimits: { maxTotalBytes: 2 ** 31 + 1 } }, 'collectLimits.maxTotalBytes: 2147483649 is not'],
    [{ collect: 'out/**' }, 'collect: "out/**" is not an array'],
    [{ collect: [5] }, 'collect[0]: 5 cannot be used'],
    [{ collect: Array.from({ length: 101 }, () => '*') }, 'collect: 101 globs'],
  ])('%#', async (fields, named) => {
    expect(await refusal(fields)).toContain(named)
  })

  test('a file named __proto__ is a file', async () => {
    const { sandbox } = await play([done()], { request: { files: own('__proto__', 'x') as Record<string, string> } })
    expect(sandbox.sent[0]).toMatchObject({ type: 'file_put', path: '__proto__' })
  })
})

describe('Python tools', () => {
  const source = { name: 'clean', source: 'def clean(): pass', stub: 'def clean():' }
  const tools = (more: Fields = {}): Fields => ({
    tools: { signatures: [], sources: [source], open: () => undefined, ...more },
  })

  test('are sent as source, with their secrets and those of the request', async () => {
    const { result, sandbox } = await play([done()], {
      request: { ...tools({ requiredSecrets: ['A', 'B'] }), requiredSecrets: ['B', 'C'] },
    })
    expect(sandbox.sent).toMatchObject([{ tool_sources: [source], required_secrets: ['B', 'C', 'A'] }])
    expect([result.status, 'tools' in (sandbox.sent[0] ?? {})]).toEqual(['step-done', false])
  })

  test.each([
    [{ ...tools(), inputs: { clean: 1 } }, 'inputs: "clean" is the name of a Python tool; rename the input'],
    [
      { ...tools(), inputs: { describe_tool: 1 } },
      'inputs: "describe_tool" is a function of every script that has tools',
    ],
    [{ inputs: { ToolError: 1 } }, 'inputs: "ToolError" is a class of every script'],
    [
      tools({ sources: [{ ...source, source: 'é'.repeat((1 << 19) + 1) }] }),
      'tools: the source of the Python tool "clean" has 1048578 bytes; at most 1048576 are allowed',
    ],
    [
      tools({ sources: Array.from({ length: 257 }, () => source) }),
      'tools: 257 Python tools; at most 256 are allowed in one run',
    ],
    [
      tools({ sources: Array.from({ length: 33 }, () => ({ ...source, source: 'x'.repeat(1 << 20) })) }),
      'tools: the sources of the Python tools have 34603008 bytes; at most 33554432 in one run',
    ],
    [
      tools({ requiredSecrets: ['LD_PRELOAD'] }),
      'secrets of the Python tools: not usable as names of environment variables: "LD_PRELOAD"',
    ],
  ])('%#', async (fields, message) => {
    expect(await refusal(fields)).toContain(message)
  })

  test('describe_tool is an ordinary input in a run without tools', async () => {
    const { sandbox } = await play([done()], { request: { inputs: { describe_tool: 1 } } })
    expect(sandbox.sent).toMatchObject([{ inputs: { describe_tool: 1 } }])
  })
})
