import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { storeInMemory } from '../../../src/artifacts/index.ts'
import { createSandglass, type Sandglass } from '../../../src/sandglass.ts'
import {
  createArtifactService,
  dirDigest,
  type InteractiveProgramRunner,
  newEnvInjectingEngine,
  newSandglassEngine,
  type RunResult,
  type SandglassEngine,
  saveArtifactHelper,
  withArtifactService,
  type Workspace,
  WorkspaceRegistry,
} from '../../../src/workspace-api/index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { testCpuShare, testNamedWorkspaces } from '../../support/workspace-api-rules.ts'
import { workspaceCases } from '../../support/workspace-cases.ts'

const host = mkdtempSync(join(tmpdir(), 'sandglass-workspaces-'))
afterAll(() => rmSync(host, { recursive: true, force: true }))
const { skip } = await requireLocalEngine()
/** The cases that the original has for its local engine. */
const CASES = workspaceCases('local_runtime')['cases'] ?? []

describe.skipIf(skip)('workspaces by the names of codeexecutor, on the local engine', () => {
  let sg: Sandglass
  let engine: SandglassEngine
  let ws: Workspace
  const sh = async (script: string, spec: { cwd?: string; env?: Record<string, string> } = {}): Promise<string> => {
    const { stdout, stderr } = await engine.runner().runProgram(ws, { cmd: 'sh', args: ['-c', script], ...spec })
    return stdout + stderr
  }
  const put = (files: Record<string, string>): Promise<void> =>
    engine.fs().putFiles(
      ws,
      Object.entries(files).map(([path, content]) => ({ path, content })),
    )
  beforeAll(async () => {
    sg = await createSandglass({ engine: 'local', poolSize: 0 })
    engine = await newSandglassEngine(sg, { hostDirectories: [join(host, 'allowed')] })
    ws = await engine.manager().createWorkspace('exec/1')
  }, 60_000)
  afterAll(() => sg.close())

  describe('WS-01 and WS-02: the engine and its workspaces', () => {
    test('it says what it gives, and a workspace has the layout and a metadata file', async () => {
      expect(engine.describe()).toMatchObject({
        isolation: 'os-sandbox',
        networkAllowed: false,
        readOnlyMount: true,
        programs: true,
      })
      expect(ws).toEqual({ id: expect.stringMatching(/^exec_1\..+/) as string, path: '/workspace' })
      expect(await sh('ls')).toBe('metadata.json\nout\nruns\nskills\nwork\n')
    })

    test('equal ids of executions have workspaces apart, and cleanup ends one for good', async () => {
      const manager = engine.manager()
      const [a, b] = await Promise.all([manager.createWorkspace('same'), manager.createWorkspace('same')])
      expect(a.id).not.toBe(b.id)
      await engine.fs().putFiles(a, [{ path: 'x', content: 'a' }])
      expect(await engine.fs().collect(b, ['x'])).toEqual([])
      await Promise.all([a, b, a].map((one) => manager.cleanup(one)))
      await expect(engine.fs().collect(a, ['x'])).rejects.toMatchObject({ code: 'workspace_closed' })
    })

    test.each([
      [{ persist: true }, 'feature_unavailable'],
      [{ maxDiskBytes: -1 }, 'invalid_request'],
    ])('the policy %j is refused', async (policy, code) => {
      await expect(engine.manager().createWorkspace('x', policy)).rejects.toMatchObject({ code })
    })

    test('maxDiskBytes holds what programs write', async () => {
      const small = await engine.manager().createWorkspace('small', { isolated: true, maxDiskBytes: 16 * 1024 * 1024 })
      const args = ['-c', 'head -c 64M /dev/zero > big; echo $?; [ $(stat -c %s big) -le 16777216 ] && echo held']
      const { stdout } = await engine.runner().runProgram(small, { cmd: 'sh', args })
      expect(stdout).toBe('1\nheld\n')
      await engine.manager().cleanup(small)
    })

    test('WS-25: a registry makes a workspace again when its sandbox has ended', async () => {
      await using registry = new WorkspaceRegistry()
      const manager = engine.manager()
      const first = await registry.acquire(manager, 'a')
      expect(await registry.acquire(manager, 'a')).toBe(first)
      await manager.cleanup(first)
      expect((await registry.acquire(manager, 'a')).id).not.toBe(first.id)
    })
  })

  describe('WS-13 and WS-15: programs', () => {
    const runs = CASES.filter(({ op, expected }) => op === 'run' && expected !== undefined)

    test.each(runs)('$cmd $args', async ({ cmd, args, timeout_ms: timeoutMs, env, cwd, setup, expected }) => {
      if (setup !== undefined)
        await sh('mkdir -p custom-bin; printf "#!/bin/sh\\n" > custom-bin/pathcmd; chmod +x custom-bin/pathcmd', {
          cwd: 'work',
        })
      const spec = { cmd, args, timeoutMs, env, cwd } as Parameters<
        ReturnType<SandglassEngine['runner']>['runProgram']
      >[1]
      const defined = Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined)) as typeof spec
      const { exitCode, timedOut, stderr } = await engine.runner().runProgram(ws, defined)
      const { exit_code: wanted = exitCode, timed_out: late = timedOut } = expected as {
        exit_code?: number
        timed_out?: boolean
      }
      expect({ exitCode, timedOut }).toEqual({ exitCode: wanted, timedOut: late })
      expect(stderr === '').toBe(exitCode === 0)
    })

    test('the variables of the layout are there unless the spec has them, RUN_DIR is a directory of this run alone', async () => {
      const script = 'echo $WORKSPACE_DIR $SKILLS_DIR $WORK_DIR $OUTPUT_DIR; cd $RUN_DIR; pwd; ls | wc -l'
      const lines = (await sh(script, { env: { OUTPUT_DIR: 'mine' } })).split('\n')
      expect(lines[0]).toBe('/workspace /workspace/skills /workspace/work mine')
      expect(lines[1]).toMatch(/^\/workspace\/runs\/[^/]+$/)
      expect(lines[2]).toBe('0')
      expect(await sh('echo $RUN_DIR')).not.toBe(lines[1])
    })

    test('nothing of the host environment is there, and nothing of a provider is in an argument list', async () => {
      const injected = newEnvInjectingEngine(engine, () => ({ TOKEN: 'tok-1234', LD_PRELOAD: '/x', PATH: '/evil' }))
      const args = [
        '-c',
        'echo $TOKEN; echo ${LD_PRELOAD-none}; cat /proc/[0-9]*/cmdline | tr "\\0" "\\n" | grep -c tok[-]1234; env | grep -c ^HOST_SECRET',
      ]
      process.env['HOST_SECRET'] = 'x'
      try {
        const { stdout } = await injected.runner().runProgram(ws, { cmd: 'sh', args })
        expect(stdout).toBe('tok-1234\nnone\n0\n0\n')
      } finally {
        delete process.env['HOST_SECRET']
      }
    })

    test('limits are enforced, or refused', async () => {
      const run = (limits: object): Promise<RunResult> =>
        engine.runner().runProgram(ws, { cmd: 'python3', args: ['-c', 'x = bytearray(300 << 20)'], limits })
      expect((await run({ memoryMB: 200, maxPIDs: 20 })).exitCode).toBe(1)
      expect((await run({ memoryMB: 0 })).exitCode).toBe(0)
      await expect(run({ maxPIDs: -1 })).rejects.toMatchObject({ code: 'invalid_request' })
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

    test.each([
      ['../x', 'invalid_request'],
      ['nowhere', 'path_not_found'],
    ])('the working directory %s is refused', async (cwd, code) => {
      await expect(engine.runner().runProgram(ws, { cmd: 'true', cwd })).rejects.toMatchObject({ code })
    })

    test('WS-16: a session takes text, and its result has both streams', async () => {
      const script = "echo ready; read v; echo out:$v; echo err:$v >&2; printf 'choose: '; read w; exit 3"
      const runner = engine.runner() as ReturnType<SandglassEngine['runner']> & InteractiveProgramRunner
      const session = await runner.startProgram(ws, { cmd: 'sh', args: ['-c', script], stdin: 'first\n' })
      expect(() => session.runResult()).toThrow('the session is still running; call runResult()')
      let text = ''
      while (!text.includes('choose: ')) text += (await session.poll()).output
      expect(session.state()).toEqual({ status: 'running', exitCode: null })
      await session.write('x', true)
      while ((await session.poll()).status === 'running');
      expect(session.runResult()).toMatchObject({
        stdout: 'ready\nout:first\nchoose: ',
        stderr: 'err:first\n',
        exitCode: 3,
      })
      expect(session.log(0).output).toContain('out:first')
      await expect(session.write('y')).rejects.toMatchObject({ code: 'program_not_running' })
      await Promise.all([session.close(), session.close(), session.kill(0)])
    })
  })

  describe('WS-04 and WS-07: files', () => {
    test('modes have defaults, and paths stay inside, also behind a planted link', async () => {
      await engine.fs().putFiles(ws, [
        { path: 'a/b/c.txt', content: 'c', mode: 0 },
        { path: 'a/run', content: 'r', mode: 0o755 },
      ])
      expect(await sh('stat -c %a a/b/c.txt a/run; ln -s /tmp a/out')).toBe('644\n755\n')
      for (const path of ['../evil.txt', '', '/x', 'a/out/x'])
        await expect(engine.fs().putFiles(ws, [{ path, content: 'x' }])).rejects.toMatchObject({
          code: path === 'a/out/x' ? 'path_refused' : 'invalid_request',
        })
    })

    test('a file is collected once, whatever globs and links name it; long ones are cut', async () => {
      await put({ 'dst/a.txt': 'a', 'dst/sub/b.txt': 'ä', 'out/env.txt': 'e' })
      await sh(
        'ln -s a.txt dst/0.txt; ln -s /etc/passwd dst/out.txt; ln -s gone dst/lost.txt; head -c 4194427 /dev/zero > work/big.bin; : > .metadata.tmp',
      )
      const files = await engine
        .fs()
        .collect(ws, ['dst/*.txt', 'dst/**/*.txt', '$OUTPUT_DIR/env.txt', '.metadata.tmp', '.'])
      expect(files.map(({ name, content, truncated }) => [name, content, truncated])).toEqual([
        ['dst/a.txt', 'a', false],
        ['dst/sub/b.txt', 'ä', false],
        ['out/env.txt', 'e', false],
      ])
      const [big] = await engine.fs().collect(ws, ['work/*.bin'])
      expect([big?.data.length, big?.sizeBytes, big?.truncated, big?.mimeType, big?.content]).toEqual([
        4194304,
        4194427,
        true,
        'application/octet-stream',
        '',
      ])
      expect(await engine.fs().collect(ws, [])).toEqual([])
      await expect(engine.fs().collect(ws, ['../*'])).rejects.toMatchObject({ code: 'invalid_request' })
    })
  })

  describe('WS-08 and WS-28: outputs', () => {
    test('limits, names, versions and text; what is cut is never saved', async () => {
      await put({ 'res/a.txt': 'alpha', 'res/b.txt': 'bravo', 'res/c.bin': '\0', 'res/noname': 'text' })
      const service = createArtifactService(storeInMemory())
      await withArtifactService(service, async () => {
        const spec = { globs: ['res/*.txt', 'res/**/*.txt'], save: true, inline: true, nameTemplate: 'prefix/' }
        const one = await engine.fs().collectOutputs(ws, { ...spec, maxFiles: 1 })
        const ref = { mimeType: 'text/plain', sizeBytes: 5, truncated: false }
        const a = { ...ref, name: 'res/a.txt', content: 'alpha', savedAs: 'prefix/res/a.txt', version: 0 }
        expect(one).toEqual({ files: [a], limitsHit: true, skipped: [] })
        const both = await engine.fs().collectOutputs(ws, spec)
        expect(both).toMatchObject({
          limitsHit: false,
          files: [
            { ...a, version: 1 },
            { name: 'res/b.txt', version: 0 },
          ],
        })
        expect(Buffer.from((await service.load('prefix/res/a.txt')).data).toString()).toBe('alpha')
        await expect(
          engine.fs().collectOutputs(ws, { ...spec, maxFileBytes: 4, globs: ['res/*'] }),
        ).rejects.toMatchObject({
          code: 'too_large',
        })
        expect((await service.list()).map(({ name, version }) => [name, version])).toEqual([
          ['prefix/res/a.txt', 1],
          ['prefix/res/b.txt', 0],
        ])
      })
      const cut = await engine
        .fs()
        .collectOutputs(ws, { globs: ['res/*'], inline: true, maxFileBytes: 4, maxTotalBytes: 9 })
      expect(cut.limitsHit).toBe(true)
      expect(cut.files.map(({ name, content, mimeType, truncated }) => [name, content, mimeType, truncated])).toEqual([
        ['res/a.txt', 'alph', 'text/plain', true],
        ['res/b.txt', 'brav', 'text/plain', true],
        ['res/c.bin', '', 'application/octet-stream', false],
      ])
      await expect(engine.fs().collectOutputs(ws, { globs: ['res/*'], save: true })).rejects.toThrow(
        'there is no artifact service',
      )
      expect(await engine.fs().collectOutputs(ws, { globs: ['.'] })).toMatchObject({ files: [] })
      await expect(engine.fs().collectOutputs(ws, { globs: 'x' as never })).rejects.toThrow(
        'globs: "x" is not an array',
      )
    })

    test('a link to nowhere is left out, and named', async () => {
      await sh('mkdir lost; ln -s missing lost/broken')
      const { files, skipped } = await engine.fs().collectOutputs(ws, { globs: ['lost/*'] })
      expect([files, skipped.map(({ path }) => path)]).toEqual([[], ['lost/broken']])
    })
  })

  describe('WS-05 and WS-06: staging', () => {
    test('a directory is copied, or shown read-only', async () => {
      const tree = join(host, 'tree')
      mkdirSync(join(tree, 'sub'), { recursive: true })
      writeFileSync(join(tree, 'run.sh'), '#!/bin/sh\necho ran\n', { mode: 0o755 })
      writeFileSync(join(tree, 'sub/x'), 'x')
      const fs = engine.fs()
      expect(await fs.stageDirectory(ws, tree, 'work/copied')).toEqual({ mountUsed: false })
      expect(await fs.stageDirectory(ws, tree, 'work/shown', { readOnly: true, allowMount: true })).toEqual({
        mountUsed: true,
      })
      const attack = 'chmod -R u+w . 2>/dev/null; (echo evil > run.sh) 2>/dev/null; ./run.sh; cat sub/x'
      expect(await sh(attack, { cwd: 'work/shown' })).toBe('ran\nx')
      expect(await sh(attack, { cwd: 'work/copied' })).not.toContain('ran')
      await expect(fs.stageDirectory(ws, tree, 'x', { readOnly: true, allowMount: false })).rejects.toMatchObject({
        code: 'limit_not_enforceable',
      })
      await expect(fs.stageDirectory(ws, join(host, 'missing'), 'x')).rejects.toMatchObject({ code: 'invalid_request' })
      // The link in the workspace is a script's to spoil; a program that starts there is not misled.
      await sh(
        'rm work/shown; mkdir work/shown; echo "#!/bin/sh\necho evil" > work/shown/run.sh; chmod +x work/shown/run.sh',
      )
      expect(await sh('./run.sh', { cwd: 'work/shown' })).toBe('ran\n')
    })

    test('each source lands exactly at its place; host:// only below the allowed directories', async () => {
      const allowed = join(host, 'allowed')
      mkdirSync(join(allowed, 'd/sub'), { recursive: true })
      writeFileSync(join(allowed, 'd/sub/x.txt'), 'in d')
      writeFileSync(join(host, 'secret'), 'secret')
      symlinkSync(join(host, 'secret'), join(allowed, 'leak'))
      await put({ 'work/src.txt': 'inside' })
      await withArtifactService(createArtifactService(storeInMemory()), async () => {
        await saveArtifactHelper('foo.txt', 'v0')
        await saveArtifactHelper('foo.txt', 'v1')
        await engine
          .fs()
          .stageInputs(ws, [
            { from: 'artifact://foo.txt', pin: true },
            { from: 'artifact://foo.txt@0', to: 'work/zero' },
            { from: `host://${allowed}/d`, to: 'work/inputs/d' },
            { from: `host://${allowed}/d/sub/x.txt`, to: 'work/inputs/linked', mode: 'link' },
            { from: 'workspace://work/src.txt' },
            { from: 'workspace://work/src.txt', to: 'work/inputs/l', mode: 'link' },
          ])
        await saveArtifactHelper('foo.txt', 'v2')
        await sh('echo {} > metadata.json; sed -i s/1/0/ metadata.json; rm metadata.json; mkdir metadata.json')
        await engine.fs().stageInputs(ws, [{ from: 'artifact://foo.txt', pin: true }])
      })
      const script =
        'cd work; cat inputs/foo.txt zero inputs/d/sub/x.txt inputs/linked inputs/src.txt inputs/l; readlink inputs/l inputs/linked'
      expect(await sh(script)).toBe('v1v0in din dinsideinside/workspace/work/src.txt\n/inputs/work/inputs/linked\n')
      for (const [from, code] of [
        [`host://${host}/secret`, 'mount_refused'],
        [`host://${allowed}/leak`, 'mount_refused'],
        [`host://${allowed}/../secret`, 'mount_refused'],
        ['noslash', 'invalid_request'],
        ['artifact://@0', 'invalid_request'],
        ['artifact://foo.txt', 'invalid_request'],
        ['workspace://no/such/file.txt', 'path_refused'],
        ['skill://none/x', 'invalid_request'],
      ] as const)
        await expect(engine.fs().stageInputs(ws, [{ from }])).rejects.toMatchObject({ code })
      for (const to of ['../x', '/x', 'a//b'])
        await expect(engine.fs().stageInputs(ws, [{ from: 'workspace://work/src.txt', to }])).rejects.toThrow('to: ')
      await sh('ln -s /etc/passwd work/out-link')
      await expect(engine.fs().stageInputs(ws, [{ from: 'workspace://work/out-link', to: 'work/y' }])).rejects.toThrow(
        'leads out',
      )
    })
  })

  test('WS-24: a script that spoils the metadata changes nothing that the host knows; the view comes back', async () => {
    const own = await engine.manager().createWorkspace('metadata')
    const run = (script: string): Promise<{ stdout: string }> =>
      engine.runner().runProgram(own, { cmd: 'sh', args: ['-c', script] })
    await run('echo "{ broken" > metadata.json')
    await expect(engine.fs().stageInputs(own, [{ from: 'noslash' }])).rejects.toMatchObject({ code: 'invalid_request' })
    await engine.fs().stageInputs(own, [])
    expect(JSON.parse((await run('cat metadata.json')).stdout)).toMatchObject({ version: 1, inputs: [] })
    await run('rm metadata.json; ln -s /tmp/x metadata.json')
    await engine.fs().collectOutputs(own, { globs: ['out/*'] })
    await run('rm metadata.json')
    await engine.fs().collectOutputs(own, { globs: ['out/**'] })
    const { outputs } = JSON.parse((await run('cat metadata.json')).stdout) as { outputs: { globs: string[] }[] }
    expect(outputs.map(({ globs }) => globs)).toEqual([['out/*'], ['out/**']])
    await engine.manager().cleanup(own)
  })

  test('WS-26: a skill is staged once, read-only, and its programs know its name', async () => {
    const skill = join(host, 'my-skill')
    mkdirSync(skill)
    writeFileSync(join(skill, 'SKILL.md'), '---\nname: tool\ndescription: Does it.\n---\nRun it.\n')
    writeFileSync(join(skill, 'k.txt'), 'first')
    chmodSync(join(skill, 'k.txt'), 0o666)
    const own = await engine.manager().createWorkspace('skill')
    const run = async (script: string, cwd = ''): Promise<string> =>
      (await engine.runner().runProgram(own, { cmd: 'sh', args: ['-c', script], cwd })).stdout
    const staged = await engine.stageSkill(own, skill)
    expect(staged).toMatchObject({
      name: 'tool',
      relPath: 'skills/tool',
      digest: await dirDigest(skill),
      mounted: true,
    })
    expect(await engine.stageSkill(own, skill)).toBe(staged)
    const attack = 'chmod u+w k.txt; echo evil > k.txt; rm -f SKILL.md; cat k.txt; echo " $SKILL_NAME $SKILLS_DIR"; pwd'
    expect(await run(attack, 'skills/tool')).toBe('first tool /inputs/skills\n/inputs/skills/tool\n')
    await run('rm skills/tool; mkdir skills/tool; echo evil > skills/tool/k.txt')
    expect(await run('cat k.txt $SKILLS_DIR/tool/k.txt', '$SKILLS_DIR/tool')).toBe('firstfirst')
    await engine.fs().stageInputs(own, [
      { from: 'skill://tool/k.txt', to: 'work/inputs/lk.txt', mode: 'link' },
      { from: 'skill://tool', to: 'work/copy' },
    ])
    expect(await run('readlink work/inputs/lk.txt; cat work/inputs/lk.txt work/copy/k.txt')).toBe(
      '/inputs/skills/tool/k.txt\nfirstfirst',
    )
    writeFileSync(join(skill, 'k.txt'), 'second')
    await run('rm -r skills/tool')
    expect((await engine.stageSkill(own, skill)).digest).not.toBe(staged.digest)
    expect(await run('cat k.txt skills/../skills/tool/k.txt 2>/dev/null', 'skills/tool')).toContain('second')
    symlinkSync('/etc/passwd', join(skill, 'leak'))
    await expect(engine.stageSkill(own, skill)).rejects.toThrow('leads out')
    await engine.manager().cleanup(own)
    expect(readFileSync(join(skill, 'k.txt'), 'utf8')).toBe('second')
  })
})
