import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSandglass, type Sandglass } from '../../../src/sandglass.ts'
import {
  type CodeBlock,
  newCodeExecutor,
  newEngine,
  newEnvInjectingCodeExecutor,
  newSandglassEngine,
  type ProgramRunner,
  type RebindableCodeExecutor,
  type SandglassEngine,
} from '../../../src/workspace-api/index.ts'
import { hearSpans } from '../../support/hear-spans.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { workspaceCases } from '../../support/workspace-cases.ts'

const { skip } = await requireLocalEngine()

describe.skipIf(skip)('WS-19: blocks of code, on the local engine', () => {
  const block = (language: string, code: string): CodeBlock => ({ language, code })
  let sg: Sandglass
  let engine: SandglassEngine
  let executor: RebindableCodeExecutor
  const outputOf = async (...blocks: [language: string, code: string][]): Promise<string> => {
    const codeBlocks = blocks.map(([language, code]): CodeBlock => ({ language, code }))
    return (await executor.executeCode({ codeBlocks })).output
  }
  beforeAll(async () => {
    sg = await createSandglass({ engine: 'local', poolSize: 0 })
    engine = await newSandglassEngine(sg)
    executor = newCodeExecutor(engine)
  }, 60_000)
  afterAll(() => sg.close())

  const cases = (workspaceCases('local_execute_code')['cases'] ?? []).filter(({ blocks }) => blocks !== undefined)
  test.each(cases)('case %#', async ({ blocks, output_contains: wanted }) => {
    const { output } = await executor.executeCode({ codeBlocks: blocks as CodeBlock[] })
    for (const text of [wanted].flat()) expect(output).toContain(text)
  })

  test('a failing block does not stop the next, and its output is kept', async () => {
    const output = await outputOf(
      ['python', 'print("before"); raise SystemExit(3)'],
      ['Go', 'x'],
      ['python', 'import sys; sys.stdout.write("no line"); sys.stderr.write("bad")'],
      ['bash', 'echo last; kill -9 $$'],
    )
    expect(output).toBe(
      'before\nError executing code block 0: cmd=python3: exit code 3\n' +
        'Error executing code block 1: block: unsupported language: Go; use python, bash, javascript or typescript\n' +
        'no line\nbadlast\nError executing code block 3: cmd=bash: exit code 137\n',
    )
  })

  test('WS-21: javascript and typescript run where the sandbox has Node, else the reason is said', async () => {
    const programs = (await sg.report()).probes['programs'] as readonly string[]
    const output = await outputOf(
      ['js', 'console.log("j" + 1)'],
      ['typescript', 'const x: number = 2\nconsole.log("t" + x)'],
    )
    const least = 'Error executing code block 1: typescript needs Node 22.18 or later; the sandbox has '
    const [node, nothing] = [['j1\nt2\n', `j1\n${least}v`], [`${least}no node`]]
    expect((programs.includes('node') ? node : nothing).some((text) => output.includes(text))).toBe(true)
  })

  test('WS-21: typescript runs by the type stripping of the Node that the sandbox has', async () => {
    // The Node of this process, whatever the machine has.
    const node = realpathSync(process.execPath)
    const own = await newSandglassEngine(sg, { hostDirectories: [dirname(node)] })
    const ws = await own.manager().createWorkspace('typescript')
    await own.fs().stageInputs(ws, [{ from: `host://${node}`, to: 'tools/node', mode: 'link' }])
    const PATH = `${ws.path}/tools:/usr/bin:/bin`
    const runner: ProgramRunner = {
      runProgram: (at, spec, options) => own.runner().runProgram(at, { ...spec, env: { ...spec.env, PATH } }, options),
    }
    const withNode = newCodeExecutor(newEngine(own.manager(), own.fs(), runner, own.describe()), { workspace: ws })
    const codeBlocks = [
      block('javascript', 'console.log("j" + 1)'),
      block('typescript', 'interface Sum { n: number }\nconst x: Sum = { n: 2 }\nconsole.log("t" + x.n)'),
      block('ts', 'enum E { A }'),
    ]
    const { output } = await withNode.executeCode({ codeBlocks })
    expect(output).toMatch(
      /^j1\nt2\n[^]*TypeScript enum is not supported[^]*Error executing code block 2: cmd=node: exit code 1\n$/,
    )
    await own.manager().cleanup(ws)
  })

  test('files that blocks make are returned, blocks and byte code are not; the directory is src', async () => {
    const code =
      'import os, code_1; open("plot.png", "wb").write(b"x\\0"); open(os.environ["OUTPUT_DIR"] + "/a.txt", "w").write("ä"); print(os.getcwd())'
    const codeBlocks = [
      { language: 'python', code: '' },
      { language: 'python', code: 'x = 1' },
      { language: 'py', code },
    ]
    const { output, outputFiles } = await executor.executeCode({ codeBlocks, executionId: 'files' })
    expect(output).toBe('/workspace/src\n')
    expect(outputFiles.map(({ name, content, mimeType, sizeBytes }) => [name, content, mimeType, sizeBytes])).toEqual([
      ['out/a.txt', 'ä', 'text/plain', 2],
      ['src/plot.png', '', 'image/png', 2],
    ])
    expect(await executor.executeCode({ codeBlocks: [] })).toEqual({ output: '', outputFiles: [] })
  })

  test('10 executions in one workspace at the same time keep apart, touch no file of a user, and leave what they made', async () => {
    const ws = await engine.manager().createWorkspace('shared')
    await engine.fs().putFiles(ws, [{ path: 'code_0.sh', content: 'mine' }])
    const pathsAfter = async (options: { cleanTempFiles?: boolean }, code: string): Promise<string[]> => {
      const shared = newCodeExecutor(engine, { workspace: ws, ...options })
      await shared.executeCode({ codeBlocks: [block('python', 'import code_1'), block('python', code)] })
      return (await engine.fs().collect(ws, ['**/*'])).map(({ name }) => name.replace(/[-0-9a-f]{36}/, 'ID'))
    }
    const shared = newCodeExecutor(engine, { workspace: ws })
    const ids = Array.from({ length: 10 }, (_, index) => `id-${index}`)
    const codeOf = (id: string): string => `echo ${id}; cat code_0.sh`
    const outputs = await Promise.all(ids.map((id) => shared.executeCode({ codeBlocks: [block('bash', codeOf(id))] })))
    expect(outputs.map(({ output }) => output)).toEqual(ids.map((id) => `${id}\n${codeOf(id)}\n`))
    expect(await pathsAfter({}, '')).toEqual(['code_0.sh', 'metadata.json'])
    // A block may remove its own directory.
    await pathsAfter({}, 'import os, shutil; shutil.rmtree(os.getcwd())')
    expect(await pathsAfter({}, 'open("made.txt", "w").write("x")')).toEqual([
      'code_0.sh',
      'metadata.json',
      'src/ID/made.txt',
    ])
    expect(await pathsAfter({ cleanTempFiles: false }, '')).toEqual(
      expect.arrayContaining(['src/ID/code_0.py', 'src/ID/code_1.py']),
    )
    const [mine] = await engine.fs().collect(ws, ['code_*.sh'])
    expect(Buffer.from(mine?.data ?? []).toString()).toBe('mine')
    await engine.manager().cleanup(ws)
  })

  test('WS-22: the variables of a provider reach blocks', async () => {
    const injected = newEnvInjectingCodeExecutor(executor, async () => ({ TOKEN: 'abc', BASH_ENV: '/x' }))
    const codeBlocks = [{ language: 'bash', code: 'echo $TOKEN ${BASH_ENV-none}' }]
    expect((await injected.executeCode({ codeBlocks })).output).toBe('abc none\n')
    expect(injected.codeBlockDelimiter()).toEqual({ start: '```', end: '```' })
  })

  test('an endless block ends at its time, and an abort ends the execution', async () => {
    const quick = newCodeExecutor(engine, { timeoutMs: 300 })
    const { output } = await quick.executeCode({ codeBlocks: [{ language: 'bash', code: 'sleep 60' }] })
    expect(output).toMatch(/^Error executing code block 0: cmd=bash: killed after \d+ ms\n$/)
    const controller = new AbortController()
    const aborted = executor.executeCode(
      { codeBlocks: [{ language: 'python', code: 'import time; time.sleep(60)' }] },
      { signal: controller.signal },
    )
    setTimeout(() => controller.abort(), 300)
    await expect(aborted).rejects.toMatchObject({ code: 'aborted' })
    await expect(executor.executeCode({ codeBlocks: 'x' as never })).rejects.toThrow('codeBlocks: "x" is not an array')
  })

  test('WS-27: spans have their attributes, and those of a program its end', async () => {
    using heard = hearSpans()
    await executor.executeCode({ codeBlocks: [{ language: 'bash', code: 'exit 4' }], executionId: 'traced' })
    const ws = await engine.manager().createWorkspace('staged')
    await engine.fs().stageDirectory(ws, import.meta.dirname, 'work/x')
    await engine.manager().cleanup(ws)
    expect(heard.ended).toEqual([
      ['create', { exec_id: 'traced', path: '/workspace' }],
      ['stage.files', { exec_id: 'traced', count: 1 }],
      ['run', { exec_id: 'traced', cmd: 'bash', cwd: 'src', exit_code: 4, timed_out: false }],
      ['collect', { exec_id: 'traced', patterns: ['out/**', 'src/**'], count: 1 }],
      ['cleanup', { exec_id: 'traced', path: '/workspace' }],
      ['inline', { exec_id: 'traced', count: 1 }],
      ['create', { exec_id: 'staged', path: '/workspace' }],
      ['stage.dir', { exec_id: 'staged', host_path: import.meta.dirname, to: 'work/x', mount_used: false }],
      ['cleanup', { exec_id: 'staged', path: '/workspace' }],
    ])
  })
})
