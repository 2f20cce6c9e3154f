import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { z } from 'zod'
import type { CodeToolExecutor, PythonExecutorOptions, ToolBridge } from '../../../src/code-agent/index.ts'
import { defineTool } from '../../../src/index.ts'
import { uv } from '../environments/fixture.ts'
import { PackageIndex } from '../environments/package-index.ts'
import { makeWheel } from '../environments/wheel.ts'

const add = defineTool({
  name: 'add',
  description: 'Adds.',
  input: z.object({ a: z.int(), b: z.int() }),
  output: z.int(),
  execute: ({ a, b }) => a + b,
})

/** Checks what every executor does, on the engine of `make`. */
export async function checkExecutor(make: (options: PythonExecutorOptions) => CodeToolExecutor): Promise<void> {
  await using index = await PackageIndex.start(
    makeWheel({ name: 'ready' }),
    makeWheel({ name: 'wanted' }),
    makeWheel({ name: 'later' }),
    makeWheel({ name: 'odd' }),
    makeWheel({ name: 'later', version: '2.0' }),
  )
  const workspaceDir = mkdtempSync(join(tmpdir(), 'sandglass-agent-'))
  // Tests beside this one kill agents, whose directories stay.
  using _ = ownTemporaryDirectory()
  const before = runtimeDirectories()
  try {
    mkdirSync(join(workspaceDir, 'data'))
    writeFileSync(join(workspaceDir, 'data', 'in.txt'), 'hello')
    writeFileSync(join(workspaceDir, 'data', '.env'), 'KEY=1')
    // Neither is looked at: one leads out, the other one to a hidden file.
    mkdirSync(join(workspaceDir, '.venv'))
    symlinkSync('/usr/bin/python3', join(workspaceDir, '.venv/python'))
    symlinkSync('.env', join(workspaceDir, 'data/settings'))
    {
      await using executor = make({
        availableDependencies: ['ready'],
        workspaceDir,
        environments: {
          index: index.address,
          excludeNewer: 'none',
          allow: ['wanted', 'later', 'absent'],
          ...('path' in uv ? { uv: uv.path } : {}),
        },
      })
      await runsWithTools(executor, workspaceDir)
      await installsWhatIsMissing(executor, index)
      await tellsFailures(executor)
      await refusesToCopyBack(executor, workspaceDir)
    }
    expect(runtimeDirectories()).toEqual(before)
  } finally {
    rmSync(workspaceDir, { recursive: true })
  }
}

/** CA-03, CA-05: tools, the copy of the workspace, and its path. */
async function runsWithTools(executor: CodeToolExecutor, workspaceDir: string): Promise<void> {
  const unchanged = statSync(join(workspaceDir, 'data/in.txt')).mtimeMs
  const bridges: ToolBridge[] = []
  const script = [
    'import os, ready',
    'print(os.getcwd(), open("data/in.txt").read(), add(a=1, b=2), ready.VERSION)',
    'os.mkdir("out")',
    'assert os.listdir("data") == ["in.txt"]',
    'open("out/[a]*.txt", "w").write("made")',
    'open(".envrc", "w").write("evil")',
    'emit_result({"n": 1})',
  ].join('\n')
  const output = await executor.execute([add], script, [], (bridge) => void bridges.push(bridge))
  expect(output).toBe(`${executor.workspaceFullPath()} hello 3 1.0\n{"n":1}`)
  expect(bridges).toEqual([{ transport: 'stdio', tools: ['add'] }])
  expect(readFileSync(join(workspaceDir, 'out/[a]*.txt'), 'utf8')).toBe('made')
  expect(readdirSync(workspaceDir).toSorted()).toEqual(['.venv', 'data', 'out'])
  expect(statSync(join(workspaceDir, 'data/in.txt')).mtimeMs).toBe(unchanged)
}

/** CA-04, CA-05, CA-11, CA-12: packages accumulate, and one that fails hides no other. */
async function installsWhatIsMissing(executor: CodeToolExecutor, index: PackageIndex): Promise<void> {
  const failed = await executor.execute([], 'print("ran")', ['wanted', 'absent', 'odd', '-r x', 'later'])
  expect(failed).toMatch(/^Error: the script was not run/)
  expect(failed).toMatch(/- -r x: .*option/)
  expect(failed).toMatch(/- absent: .*has no package absent.*uv said/)
  expect(failed).toMatch(/- odd: .*requires odd, which/)
  expect(failed).toContain('Installed: wanted, later.')
  expect(failed).not.toContain('ran')
  const asked = index.requests.length
  // The others are there, without a request.
  expect(await executor.execute([], 'import wanted, later, ready\nprint(later.VERSION)', ['later'])).toBe('2.0\n')
  expect(index.requests.slice(asked)).toEqual([])
  // A reviewer sees all that the script can import.
  const declared = '# /// script\n# dependencies = ["later<2"]\n# ///\nimport later'
  expect(await executor.inspect([], declared, ['Wanted'])).toMatchObject({
    dependencies: ['ready==1.0', 'wanted', 'later', 'Wanted', 'later<2'],
  })
  expect(await executor.inspect([], '# /// script\n# a =\n# ///\n', [])).toMatchObject({
    problem: expect.stringContaining('it is not TOML') as unknown,
  })
  // Another version than an earlier script named.
  await executor.execute([], '', ['later>=2'])
  expect(await executor.execute([], 'import later\nprint(later.VERSION)', ['later<2'])).toBe('1.0\n')
  expect(await executor.execute([], 'import wanted', ['x'.repeat(300)])).toMatch(/^Error: .*- x{150}/s)
}

/** CA-11: what a model reads of a failure. */
async function tellsFailures(executor: CodeToolExecutor): Promise<void> {
  const raised = await executor.execute([], 'print("before")\n1/0', [])
  expect(raised).toMatch(
    /^Error: the script ended with failed \(exit status 1\)\.\nTraceback [^]*line 2[^]*ZeroDivisionError/,
  )
  expect(raised).toMatch(/Its output:\nbefore\n$/)
  const block = '# /// script\n# dependencies = ["odd"]\n# ///\n'
  expect(await executor.execute([], `${block}print(1)`, [])).toMatch(
    /^Error: the script was not run.*requires odd, which/s,
  )
  expect(await executor.execute([], `${block.replace('odd', 'later')}import later\nprint(2)`, [])).toBe('2\n')
  expect(await executor.execute([], '# /// script\n# a =\n# ///\n', [])).toMatch(/^Error: .*TOML/)
  expect(await executor.execute([], `#${'x'.repeat(5 * 1024 * 1024)}`, [])).toMatch(
    /^Error: the script was not run: it has 5242881 characters/,
  )
  const killed = await executor.execute([], 'import os\nos.kill(os.getpid(), 9)', [])
  expect(killed).toMatch(/^Error: the script ended with crashed \(signal SIGKILL\)/)
}

/** Nothing becomes a repository, and the model learns no path of the host. */
async function refusesToCopyBack(executor: CodeToolExecutor, workspaceDir: string): Promise<void> {
  const bare =
    'import os\nfor name in ("HEAD", "objects/x", "refs/x"):\n    os.makedirs(os.path.dirname("sub/" + name), exist_ok=True)\n    open("sub/" + name, "w").close()'
  expect(await executor.execute([], bare, [])).toMatch(
    /^Error: not all files were copied back: sub is or would become a repository/,
  )
  const replaced = 'import shutil\nshutil.rmtree("data")\nopen("data", "w").write("x")'
  const output = await executor.execute([], replaced, [])
  expect(output).toMatch(/^Error: not all files were copied back: .*data/)
  expect(output).not.toContain(workspaceDir)
  expect(readdirSync(workspaceDir).toSorted()).toEqual(['.venv', 'data', 'out'])
}

function runtimeDirectories(): string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith('sandglass-executor-'))
}

/** Has this process make its temporary files in a directory of its own, which sandboxes can read. */
function ownTemporaryDirectory(): Disposable {
  const before = process.env['TMPDIR']
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-own-'))
  chmodSync(directory, 0o755)
  process.env['TMPDIR'] = directory
  return {
    [Symbol.dispose]: () => {
      if (before === undefined) delete process.env['TMPDIR']
      else process.env['TMPDIR'] = before
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** CA-07: tools over a WebSocket, with files of the host and without. */
export async function checkWebSocket(make: (options: PythonExecutorOptions) => CodeToolExecutor): Promise<void> {
  const workspaceDir = mkdtempSync(join(tmpdir(), 'sandglass-agent-'))
  try {
    writeFileSync(join(workspaceDir, 'in.txt'), 'hello')
    for (const files of [{ workspaceDir }, {}]) {
      await using executor = make({ transport: 'websocket', ...files })
      const bridges: ToolBridge[] = []
      const script = 'import os\nprint(os.listdir(), add(a=1, b=2))\nopen("out.txt", "w").write("made")'
      const output = await executor.execute([add], script, [], (bridge) => void bridges.push(bridge))
      expect(output).toBe('workspaceDir' in files ? "['in.txt'] 3\n" : '[] 3\n')
      expect(bridges).toEqual([{ transport: 'websocket', tools: ['add'] }])
      expect(await executor.execute([], 'print(1)', [])).toBe('1\n')
    }
    expect(readFileSync(join(workspaceDir, 'out.txt'), 'utf8')).toBe('made')
  } finally {
    rmSync(workspaceDir, { recursive: true })
  }
}
