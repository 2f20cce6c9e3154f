import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Workspace } from '../../../src/options/index.ts'
import { createSandglass, type Sandglass } from '../../../src/sandglass.ts'
import { newCodeExecutor, newEnvInjectingCodeExecutor, newSandglassEngine } from '../../../src/workspace-api/index.ts'
import { containers } from '../../support/containers.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { testHostileActivities } from '../../support/hostile-activities.ts'
import { testPrograms } from '../../support/program-rules.ts'
import { testCpuShare, testNamedWorkspaces, testStagingByCopy } from '../../support/workspace-api-rules.ts'
import { allProcesses, commandLineOf } from '../../support/processes.ts'

const HOST = fileURLToPath(new URL('../../support/doomed-workspace.main.ts', import.meta.url))

const { skip, image } = await requireDockerEngine()

describe.skipIf(skip)('in a workspace of the engine docker', () => {
  let sg: Sandglass
  let ws: Workspace
  beforeAll(async () => {
    sg = await createSandglass({ engine: 'docker', docker: { image }, poolSize: 0 })
    ws = await sg.workspace({ files: { 'in/a.txt': 'hello' } })
  }, 60_000)
  afterAll(() => sg.close())

  test('WS-04, WS-13: files, programs and scripts share a directory', async () => {
    const { exitCode, stdout } = await ws.exec('sh', ['-c', 'wc -c < in/a.txt; exit 3'])
    expect([exitCode, stdout.trim()]).toEqual([3, '5'])
    expect((await ws.run('open("out.txt", "w").write("x"); emit_result(open("in/a.txt").read())')).finalData).toBe(
      'hello',
    )
    expect(Buffer.from(await ws.get('out.txt')).toString()).toBe('x')
    await expect(ws.put({ '../x': 'y' })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('WS-15: a large input passes, and a program that was killed for memory says so', async () => {
    const text = 'x'.repeat(16 * 1024 * 1024)
    expect((await ws.run('emit_result(len(text))', { inputs: { text } })).finalData).toBe(text.length)
    const input = await ws.addInput('package.json', 'package.json')
    expect(input).toEqual({ path: '/workspace/inputs/package.json', how: 'sent' })
    await expect(ws.addInput('package.json', 'README.md')).rejects.toMatchObject({ code: 'invalid_request' })
    expect((await ws.exec('cat', [input.path])).stdout).toContain('"sandglass"')
    const killed = await ws.exec('python3', ['-c', 'held = [bytes(range(256)) * (1 << 20) for _ in range(64)]'])
    expect([killed.exitCode, killed.outOfMemory]).toEqual([137, true])
    expect((await ws.exec('echo', ['on'])).stdout).toBe('on\n')
  })

  testStagingByCopy({
    get sg() {
      return sg
    },
  })

  testCpuShare({
    get sg() {
      return sg
    },
  })

  testNamedWorkspaces({
    get sg() {
      return sg
    },
  })

  test('WS-19, WS-21, WS-22: blocks of code run in order, with the variables of a provider in no argument list', async () => {
    const plain = newCodeExecutor(await newSandglassEngine(sg))
    const executor = newEnvInjectingCodeExecutor(plain, () => ({ TOKEN: 'tok-1234', LD_PRELOAD: '/x' }))
    const find = 'cat /proc/[0-9]*/cmdline | tr "\\0" "\\n" | grep -c tok[-]1234'
    const codeBlocks = [
      { language: ' python ', code: 'import os\nopen("made.txt", "w").write(os.environ["TOKEN"])' },
      { language: 'bash', code: `ls; cat made.txt; echo " \${LD_PRELOAD-none}"; ${find}; exit 3` },
      { language: 'typescript', code: 'const x: number = 1' },
      { language: 'Go', code: '' },
    ]
    const { output, outputFiles } = await executor.executeCode({ codeBlocks })
    expect(output).toBe(
      'code_0.py\ncode_1.sh\nmade.txt\ntok-1234 none\n0\nError executing code block 1: cmd=bash: exit code 3\n' +
        'Error executing code block 2: typescript needs Node 22.18 or later; the sandbox has no node\n' +
        'Error executing code block 3: block: unsupported language: Go; use python, bash, javascript or typescript\n',
    )
    expect(outputFiles.map(({ name, content }) => [name, content])).toEqual([['src/made.txt', 'tok-1234']])
  })

  test(
    'nothing of three activities is left five seconds after their host was killed',
    { timeout: 60_000 },
    async () => {
      const mark = String(200_000 + process.pid)
      const left = (): number =>
        allProcesses().filter(({ pid }) => commandLineOf(pid).startsWith(`sleep\0${mark}`)).length
      const options = JSON.stringify({ engine: 'docker', docker: { image } })
      const host = spawn(process.execPath, [HOST, mark, options], { stdio: ['ignore', 'pipe', 'inherit'] })
      const own = (): number => containers(undefined).filter(({ owner }) => owner === host.pid).length
      await once(host.stdout, 'data')
      expect(await eventually(() => (left() === 4 && own() === 1 ? undefined : `${left()} run`), 5000)).toBeUndefined()
      host.kill('SIGKILL')
      const rest = (): string | undefined =>
        left() + own() === 0 ? undefined : `${left()} processes, ${own()} containers`
      expect(await eventually(rest, 5000)).toBeUndefined()
    },
  )

  testPrograms({
    get ws() {
      return ws
    },
  })

  testHostileActivities({
    get ws() {
      return ws
    },
  })
})
