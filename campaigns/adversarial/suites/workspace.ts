import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  createArtifactService,
  saveArtifactHelper,
  storeInMemory,
  withArtifactService,
  withArtifactSession,
} from '../../../src/artifacts/index.ts'
import { createSandglass, type Sandglass, type SandglassOptions, type Workspace } from '../../../src/index.ts'
import type { SkippedFile } from '../../../src/workspace/index.ts'
import {
  type InputSpec,
  newSandglassEngine,
  type RunResult,
  type SandglassEngineOptions,
  type Workspace as NamedWorkspace,
  type WorkspaceFS,
} from '../../../src/workspace-api/index.ts'
import { openDirectory } from '../../../test/support/state-directory.ts'
import { type AcceptanceCase, readCases } from '../driver/case.ts'
import { evaluateText, isPythonExpression, scriptOf } from '../driver/material.ts'
import { IN_WORKSPACE } from '../walls.ts'

const execFileAsync = promisify(execFile)
const FLOODED_HOST = join(import.meta.dirname, '../../../test/support/flooded-host.main.ts')

/** The surroundings of an assertion. */
interface Place {
  readonly ws: Workspace
  readonly sg: Sandglass
  /** Those of the Sandglass. */
  readonly options: SandglassOptions
  readonly given: AcceptanceCase
  /** The script of the case, with the paths of the canary. */
  readonly script: string
  /** Text that no sandbox may read. */
  readonly secret: string
  /** Ends the case as skipped. */
  readonly skip: (reason: string) => never
}

type Assertion = (place: Place) => Promise<void>

/** Runs the cases that attack workspaces and their programs. Each has a workspace of its own. */
export function workspaceCases(options: SandglassOptions): void {
  const cases = readCases().filter(({ id }) => IN_WORKSPACE.has(id))

  test('every case of a workspace has an assertion, and every assertion a case', () => {
    expect(Object.keys(ASSERTIONS).toSorted()).toEqual([...IN_WORKSPACE].toSorted())
    expect(cases.map(({ id }) => id).toSorted()).toEqual([...IN_WORKSPACE].toSorted())
  })

  describe('cases in a workspace', () => {
    const secret = 'canary-of-the-host-7f3a'
    const outside = openDirectory('canary')
    const canary = join(outside, 'canary.txt')
    const values = { CANARY_FILE: canary, CANARY_DIR: outside, CANARY_CONTENT: secret, SESSION_TAG: 'tag' }
    let sg: Sandglass

    beforeAll(async () => {
      mkdirSync(outside, { recursive: true })
      writeFileSync(canary, secret)
      process.env['SANDGLASS_TEST_CANARY'] = secret
      sg = await createSandglass({ ...options, poolSize: 0 })
    })

    afterAll(async () => {
      delete process.env['SANDGLASS_TEST_CANARY']
      await sg.close()
      const content = readFileSync(canary, 'utf8')
      rmSync(outside, { recursive: true })
      assert.equal(content, secret)
    })

    test.for(cases.map((given) => [given.id, given.title, given] as const))(
      '%s %s',
      async ([id, , given], { skip }) => {
        await using ws = await sg.workspace()
        if (given.group === 'javascript' && (await ws.exec('node', ['--version'])).exitCode !== 0)
          skip('Node does not start in the sandbox')
        const text = typeof given.script_or_input === 'string' ? scriptOf(given) : ''
        const script = Object.entries(values).reduce(
          (left, [name, value]) => left.replaceAll(`@@${name}@@`, value),
          text,
        )
        await ASSERTIONS[id]?.({ ws, sg, options, given, script, secret, skip })
        // Whatever it did, the workspace goes on.
        expect((await ws.exec('echo', ['on'])).stdout).toBe('on\n')
      },
    )
  })
}

const ASSERTIONS: Readonly<Record<string, Assertion>> = {
  'FS-001': async ({ ws, script }) => {
    await ws.run(script)
    expect(await collected(ws)).toEqual({ files: { 'out/ok.txt': 'fine' }, skipped: ['out/report.txt: link'] })
  },
  'FS-003': async ({ ws, script }) => {
    await ws.run(script)
    expect(await collected(ws)).toEqual({ files: {}, skipped: ['out/up.txt: link'] })
  },
  'FS-006': async ({ ws, script }) => {
    expect((await ws.run(script)).finalData).toBe('swapped')
    expect((await collected(ws)).files).toEqual({})
    await expect(ws.put({ 'out/new.txt': 'x' })).rejects.toMatchObject({ code: 'path_refused' })
  },
  'FS-008': async ({ ws, script }) => {
    // A staged input is a copy, so a hard link to it is harmless; one to a file of the host fails or cannot be written.
    const directory = openDirectory('input')
    const source = join(directory, 'data.txt')
    writeFileSync(source, 'data')
    await ws.put({ 'work/inputs/staged.txt': { path: source } })
    const { path } = await ws.addInput('shown.txt', source)
    expect((await ws.run(script)).finalData).toEqual({ 'work/inputs/staged.txt': 'linked' })
    await ws.exec('sh', ['-c', 'echo changed > out/hard0'])
    // A link to a copy, if the engine sends the file.
    await ws.exec('sh', ['-c', 'ln "$1" out/shown && echo changed > out/shown', 'sh', path])
    expect(readFileSync(source, 'utf8')).toBe('data')
    rmSync(directory, { recursive: true })
  },
  'FS-012': async ({ ws, script }) => {
    const made = (await ws.run(script)).finalData
    const { files } = await collected(ws)
    // `.hidden` is left out: only a glob that names it matches it.
    const hidden = await Array.fromAsync(ws.collect('out/.*'), ({ path }) => path)
    expect(hidden).toContain('out/.hidden')
    expect(new Set([...Object.keys(files), ...hidden]).size).toBe(made)
    for (const name of ['-rf', '$(id)', 'new\nline', 'esc\u001B[31m', 'bidi\u202Egnp.exe', '<script>'])
      expect(files).toHaveProperty([`out/${name}`], 'x')
  },
  'FS-017': async ({ ws, script }) => {
    // The writer may be dead before it wrote.
    await ws.put({ 'out/grow.txt': 'begun' })
    await ws.run(script)
    const { size } = await ws.stat('out/grow.txt')
    expect((await ws.get('out/grow.txt')).length).toBe(size)
    // A writer that lives: never more than was listed.
    await using _writer = await ws.start('sh', ['-c', 'while :; do echo xxxxxxxx >> out/grow.txt; done'])
    for await (const file of ws.collect('out/**')) {
      const read = await file.bytes().then(
        ({ length }) => length,
        (error: { code: string }) => error.code,
      )
      expect([file.size, 'too_large', 'workspace_io']).toContain(read)
    }
  },
  'FS-020': async ({ ws, given }) => {
    for (const glob of globsOf(given)) expect([glob, await pathsOrRefusal(ws, glob)]).toEqual([glob, []])
  },
  'FS-021': async ({ ws, given }) => {
    await ws.put({ [`out/${'a'.repeat(200)}`]: 'x' })
    const before = await costOf(ws)
    let earlier = before
    for (const glob of globsOf(given)) {
      await pathsOrRefusal(ws, glob)
      const cost = await costOf(ws)
      expect([glob, cost.cpuMs - earlier.cpuMs < 1000]).toEqual([glob, true])
      earlier = cost
    }
    expect(earlier.peakBytes - before.peakBytes).toBeLessThan(64 * 1024 * 1024)
  },
  'FS-023': async ({ sg, given, secret }) => {
    const allowed = openDirectory('allowed')
    symlinkSync('/etc', join(allowed, 'link-to-etc'))
    execFileSync('mkfifo', [join(allowed, 'fifo')])
    writeFileSync(join(allowed, 'data.txt'), 'data')
    try {
      for (const hostDirectories of [[], [allowed]]) {
        const { fs, ws, read } = await namedWorkspace(sg, { hostDirectories })
        const codes = ['invalid_request', 'mount_refused', 'path_refused']
        for (const { from, to } of inputsOf(given))
          for (const mode of ['copy', 'link'] as const) {
            const real = from.replace('/allowed/', `${allowed}/`)
            const staged = fs.stageInputs(ws, [{ from: real, to, mode }]).then(
              () => 'staged',
              (error: { code: string }) => error.code,
            )
            expect([from, mode, codes.includes(await staged)]).toEqual([from, mode, true])
          }
        expect(await read('work/inputs/x')).toBeUndefined()
        // The same request with a file that is allowed, or else the refusals prove nothing.
        const fine = fs.stageInputs(ws, [{ from: `host://${allowed}/data.txt`, to: 'work/inputs/x' }])
        if (hostDirectories.length === 0) await expect(fine).rejects.toMatchObject({ code: 'mount_refused' })
        else await fine
        expect(await read('work/inputs/x')).toBe(hostDirectories.length === 0 ? undefined : 'data')
        expect(await read('work/inputs/x')).not.toBe(secret)
      }
    } finally {
      rmSync(allowed, { recursive: true })
    }
  },
  // Versions count from 0 here, so `a@0` is the first one where there is an artifact `a`; here there is none.
  'FS-024': async ({ sg, given, secret }) => {
    const { fs, ws, read } = await namedWorkspace(sg)
    const service = createArtifactService(storeInMemory())
    const foreign = { userId: 'other', sessionId: 'other' }
    for (const name of ['secret', 'a', 'b', 'user:other/name']) await service.save(name, secret, { session: foreign })
    await withArtifactService(service, () =>
      withArtifactSession({ userId: 'me', sessionId: 'mine' }, async () => {
        for (const { from, to } of inputsOf(given))
          await expect(fs.stageInputs(ws, [{ from, to }])).rejects.toMatchObject({
            code: expect.stringMatching(/^(invalid_request|artifact_not_found)$/) as string,
          })
        expect(await read('work/inputs/x')).toBeUndefined()
        await saveArtifactHelper('a', 'mine')
        await fs.stageInputs(ws, [{ from: 'artifact://a@0', to: 'work/inputs/x' }])
        expect(await read('work/inputs/x')).toBe('mine')
      }),
    )
  },
  'FS-026': async ({ sg, given }) => {
    const allowed = openDirectory('allowed')
    const source = join(allowed, 'data.txt')
    writeFileSync(source, 'data', { mode: 0o666 })
    const { fs, ws, run } = await namedWorkspace(sg, { hostDirectories: [allowed] })
    const { inputs, script } = given.script_or_input as { inputs: InputSpec[]; script: string }
    await fs.stageInputs(
      ws,
      inputs.map((input) => ({ ...input, from: input.from.replace('/allowed/', `${allowed}/`) })),
    )
    const { stdout, stderr } = await run('python3', ['-c', `emit_result = print\n${script}`])
    expect(stdout).toMatch(/^(wrote|OSError|PermissionError)\n$/)
    expect(stderr).toBe('')
    expect(readFileSync(source, 'utf8')).toBe('data')
    rmSync(allowed, { recursive: true })
  },
  'FS-032': async ({ sg, given }) => {
    const { name_template: templates } = given.script_or_input as { name_template: string[] }
    const { fs, ws } = await namedWorkspace(sg)
    await fs.putFiles(ws, [
      { path: 'out/a', content: 'a' },
      { path: 'out/new\nline', content: 'x' },
      { path: 'user:b', content: 'x' },
      { path: 'er:c', content: 'x' },
    ])
    const service = createArtifactService(storeInMemory())
    await withArtifactService(service, async () => {
      for (const nameTemplate of templates) {
        // A template is the beginning of the name, taken as it is.
        const saved = await fs.collectOutputs(ws, { globs: ['out/a'], save: true, nameTemplate }).then(
          ({ files }) => files.map(({ savedAs }) => savedAs),
          ({ code }: { code: string }) => code,
        )
        const isFine = nameTemplate.length < 500 && !/\.\.|^\/|\0/.test(nameTemplate)
        expect([nameTemplate, saved]).toEqual([nameTemplate, isFine ? [`${nameTemplate}out/a`] : 'invalid_request'])
      }
      const before = (await service.list()).length
      // A name that a script chose neither leaves the rest saved nor reaches the artifacts that other sessions of the user have.
      for (const [globs, nameTemplate] of [
        [['out/a', 'out/new*'], 'both/'],
        [['out/a', 'user:*'], ''],
        [['out/a', 'er:*'], 'us'],
      ] as const)
        await expect(fs.collectOutputs(ws, { globs: [...globs], save: true, nameTemplate })).rejects.toMatchObject({
          code: 'invalid_request',
        })
      expect(await service.list()).toHaveLength(before)
      const [own] = (await fs.collectOutputs(ws, { globs: ['user:*'], save: true, nameTemplate: 'user:' })).files
      expect(own?.savedAs).toBe('user:user:b')
    })
  },
  'FS-035': async ({ ws, sg, script }) => {
    const seen = [await ws.run(script), await ws.run(script)]
    await using other = await sg.workspace()
    seen.push(await other.run(script))
    expect(seen.map(({ finalData }) => finalData)).toEqual([false, true, false])
  },
  'SH-003': async ({ ws, script }) => {
    expect((await ws.exec('bash', ['-c', script])).stdout).toBe('ok\n')
    const count = 'cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -c "sleep 60[0]"'
    expect((await ws.exec('sh', ['-c', count])).stdout).toBe('0\n')
  },
  'SH-007': async ({ options, given, script }) => {
    // In a process of its own, whose memory nothing else moves.
    const { stdout } = await execFileAsync(process.execPath, [FLOODED_HOST, script, JSON.stringify(options)])
    const { stdoutBytes, kept, grownMib } = JSON.parse(stdout) as Record<string, number>
    expect({ stdoutBytes, isBounded: (kept ?? Infinity) <= 1024 * 1024 }).toEqual({
      stdoutBytes: 536_870_912,
      isBounded: true,
    })
    expect(grownMib).toBeLessThanOrEqual(given.check['host_rss_growth_mb_max'] as number)
  },
  'SH-009': async ({ ws, script }) => {
    expect(await ws.exec('bash', ['-c', script])).toMatchObject({ exitCode: 139, signal: 'SIGSEGV' })
  },
  'SH-011': async ({ ws, script }) => {
    // bash gives 1 for the end of input, and more than 128 for the timeout of `read`.
    const { stdout } = await ws.exec('bash', ['-c', `${script}read -t 3 x; echo $?`])
    expect(stdout).toBe('eof\n1\n')
  },
  'SH-012': async ({ ws, given }) => {
    const { stdin, script } = given.script_or_input as { stdin: string; script: string }
    expect((await ws.exec('bash', ['-c', script], { stdin })).stdout.trim()).toBe('a  \\0   b')
  },
  'SH-016': async ({ ws, given }) => {
    const { cmd, cwd: directories } = given.script_or_input as { cmd: string; cwd: string[] }
    await ws.exec('sh', ['-c', 'mkdir work; ln -s / link-to-root'])
    for (const cwd of directories) {
      const code = await ws.exec(cmd, [], { cwd }).then(
        ({ stdout }) => stdout,
        (error: { code: string }) => error.code,
      )
      expect([cwd, code]).toEqual([cwd, cwd === 'link-to-root' ? 'path_refused' : 'invalid_request'])
    }
  },
  // The part that a terminal shows: "SH-018: on a terminal, what a program writes is escaped …" of test/sandbox/cli/exec.test.ts.
  'SH-018': async ({ ws, script }) => {
    const { stdout } = await ws.exec('bash', ['-c', script])
    expect(stdout).toBe('\u001B[2J\u001B]0;title\u0007\u001B]52;c;ZWNobyBwd25lZA==\u0007\u001B[8mhidden\n')
  },
  'SH-020': async ({ ws }) => {
    await using program = await ws.start('cat')
    await program.write('x')
    const end = await program.kill({ graceMs: 1000 })
    await expect(program.write('y')).rejects.toMatchObject({ code: 'program_not_running' })
    expect(await program.kill()).toEqual(end)
    const polls = await Promise.all(Array.from({ length: 50 }, () => program.poll()))
    expect(new Set(polls.map(({ status }) => status))).toEqual(new Set(['exited']))
    expect(() => program.log({ offset: -5 })).toThrow(expect.objectContaining({ code: 'invalid_request' }))
    expect(program.log({ offset: 1e12 }).text).toBe('')
    await program.close()
    await program.close()
    expect(await program.poll()).toMatchObject({ status: 'exited', text: '', exit: end })
  },
  'SH-021': async ({ sg }) => {
    const ws = await sg.workspace({ idleTimeoutSec: 1 })
    const programs = await Promise.all(Array.from({ length: 50 }, () => ws.start('sleep', ['1000'])))
    // Nobody asks for them any more.
    const ends = await Promise.allSettled(programs.map(({ exited }) => exited))
    expect(ends.map((end) => (end.status === 'rejected' ? (end.reason as { code: string }).code : end.value))).toEqual(
      programs.map(() => 'workspace_closed'),
    )
    // It resolves when nothing of the sandbox runs any more.
    await ws.close()
    await expect(ws.exec('true')).rejects.toThrow('not used for 1 s (idleTimeoutSec)')
  },
  'JS-002': async ({ ws, script }) => {
    expect(await ws.exec('node', ['-e', script], { timeoutSec: 2 })).toMatchObject({ timedOut: true })
  },
  'JS-005': async ({ ws, script, secret }) => {
    const all = `${script}; console.log(JSON.stringify(process.env), process.pid)`
    const { exitCode, stdout } = await ws.exec('node', ['-e', all])
    expect(exitCode).toBe(0)
    expect(stdout).not.toContain(secret)
  },
  'JS-013': async ({ ws, sg, script, skip }) => {
    if (!(await sg.report()).limitsEnforced.includes('memory'))
      skip('memory is not enforced here: the script would take that of the machine')
    expect(await ws.exec('node', ['-e', script])).toMatchObject({ outOfMemory: true, exitCode: 137 })
  },
}

/** A workspace by the names of `sandglass/workspaces`, and a look at its files. */
async function namedWorkspace(
  sg: Sandglass,
  options: SandglassEngineOptions = {},
): Promise<{
  readonly fs: WorkspaceFS
  readonly ws: NamedWorkspace
  readonly run: (cmd: string, args: string[]) => Promise<RunResult>
  /** The text of a file, or undefined. */
  readonly read: (path: string) => Promise<string | undefined>
}> {
  const engine = await newSandglassEngine(sg, options)
  const ws = await engine.manager().createWorkspace('case')
  onTestFinished(() => engine.manager().cleanup(ws))
  const fs = engine.fs()
  return {
    fs,
    ws,
    run: (cmd, args) => engine.runner().runProgram(ws, { cmd, args }),
    read: async (path) => (await fs.collect(ws, [path]))[0]?.content,
  }
}

function inputsOf({ script_or_input: material }: AcceptanceCase): { from: string; to: string }[] {
  const { inputs } = material as { inputs: { from: unknown; to: string }[] }
  return inputs.map(({ from, to }) => ({ from: isPythonExpression(from) ? evaluateText(from) : String(from), to }))
}

/** The text of the files below `out`, and what was left out. */
async function collected(ws: Workspace): Promise<{ files: Record<string, string>; skipped: string[] }> {
  const skipped: string[] = []
  const onSkipped = ({ path, reason }: SkippedFile): void => void skipped.push(`${path}: ${reason}`)
  const files: Record<string, string> = {}
  for await (const file of ws.collect('out/**', { onSkipped }))
    files[file.path] = Buffer.from(await file.bytes()).toString()
  return { files, skipped }
}

/**
 * The processor time, which no load of the machine changes, of this process and of the broker, which is process 1, and the peak of
 * the broker's memory.
 */
async function costOf(ws: Workspace): Promise<{ cpuMs: number; peakBytes: number }> {
  const { user, system } = process.cpuUsage()
  const { stdout } = await ws.exec('sh', ['-c', 'cat /proc/1/stat; getconf CLK_TCK; grep VmHWM /proc/1/status'])
  const [stat = '', ticksPerSec = '', peak = ''] = stdout.split('\n')
  // The fields after the name of the program, which may hold anything: utime and stime are the 14th and 15th of all.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = Number(fields[11]) + Number(fields[12])
  const peakBytes = Number(/\d+/.exec(peak)?.[0]) * 1024
  assert.ok(ticks >= 0 && peakBytes > 0, stdout)
  return { cpuMs: (user + system) / 1000 + (ticks * 1000) / Number(ticksPerSec), peakBytes }
}

/** The paths that a glob matches; none if it is refused. */
async function pathsOrRefusal(ws: Workspace, glob: string): Promise<string[]> {
  try {
    return await Array.fromAsync(ws.collect(glob), ({ path }) => path)
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid_request' })
    return []
  }
}

function globsOf({ script_or_input: material }: AcceptanceCase): string[] {
  const { globs } = material as { globs: unknown[] }
  return globs.map((glob) => (isPythonExpression(glob) ? evaluateText(glob) : String(glob)))
}
