import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { storeInMemory } from '../../src/artifacts/index.ts'
import { leastOf } from '../../src/testing/conformance/least-of.ts'
import { hearSpans } from './hear-spans.ts'
import { workspaceCases } from './workspace-cases.ts'
import {
  createArtifactService,
  newSandglassEngine,
  type ResourceLimits,
  type RunResult,
  type SandglassEngine,
  saveArtifactHelper,
  withArtifactService,
  type Workspace,
  WorkspaceRegistry,
  type WorkspaceSource,
} from '../../src/workspace-api/index.ts'

/**
 * Is busy for the given seconds, or until it has had half a core for a moment: 80 ms within 160 ms, of which a fifth of a core
 * cannot give more than 60. Prints the share that it had.
 */
const BUSY = `import sys, time
began = time.monotonic()
while True:
    wall, cpu = time.monotonic(), time.process_time()
    while time.process_time() - cpu < 0.08: pass
    now = time.monotonic()
    if now - wall <= 0.16: sys.exit("half")
    if now - began > float(sys.argv[1]): break
print(time.process_time() / (now - began))`

/** Tests of the share of CPU time that a program gets, on an engine with control groups. */
export function testCpuShare(at: { readonly sg: WorkspaceSource }): void {
  test('WS-15: cpuPercent holds a program to its share, and the next one is free again', async () => {
    const engine = await newSandglassEngine(at.sg)
    expect(engine.describe().limits).toEqual(['cpuPercent', 'memoryMB', 'maxPIDs'])
    const ws = await engine.manager().createWorkspace('cpu')
    const run = (seconds: number, limits: ResourceLimits): Promise<RunResult> =>
      engine.runner().runProgram(ws, { cmd: 'python3', args: ['-c', BUSY, String(seconds)], limits })
    // A machine may count time that it gave to others, and so make the share more.
    const share = await leastOf(5, 0.3, async () => {
      const { stderr, stdout } = await run(1, { cpuPercent: 20 })
      if (stderr === 'half\n') return 0.5
      expect(stderr).toBe('')
      return Number(stdout)
    })
    expect(share).toBeGreaterThan(0)
    expect(share).toBeLessThan(0.3)
    expect((await run(20, {})).stderr).toBe('half\n')
    await expect(run(1, { cpuPercent: 4 })).rejects.toMatchObject({ code: 'limit_not_enforceable' })
    await engine.manager().cleanup(ws)
  })
}

/** Tests of staging and collecting on an engine that shows no files of the host. */
export function testStagingByCopy(at: { readonly sg: WorkspaceSource }): void {
  test('WS-02, WS-05 to WS-08, WS-24, WS-26: files are staged as copies and collected; what must be read-only is refused', async () => {
    const host = mkdtempSync(join(tmpdir(), 'sandglass-staging-'))
    onTestFinished(() => rmSync(host, { recursive: true }))
    mkdirSync(join(host, 'skill/deep'), { recursive: true })
    writeFileSync(join(host, 'skill/SKILL.md'), '---\nname: tool\ndescription: x\n---\n')
    writeFileSync(join(host, 'skill/deep/k'), 'known')
    const engine = await newSandglassEngine(at.sg, { hostDirectories: [host] })
    expect(engine.describe().readOnlyMount).toBe(false)
    const ws = await engine.manager().createWorkspace('copies')
    const fs = engine.fs()
    await fs.putFiles(ws, [{ path: 'out/a.txt', content: 'alpha' }])
    for (const refused of [
      fs.stageDirectory(ws, join(host, 'skill'), 'work/x', { readOnly: true, allowMount: true }),
      engine.stageSkill(ws, join(host, 'skill')),
    ])
      await expect(refused).rejects.toMatchObject({ code: 'limit_not_enforceable' })
    expect(await engine.stageSkill(ws, join(host, 'skill'), { readOnly: false })).toMatchObject({ mounted: false })
    await withArtifactService(createArtifactService(storeInMemory()), async () => {
      await saveArtifactHelper('kept', 'v0')
      await fs.stageInputs(ws, [
        { from: 'artifact://kept' },
        { from: `host://${host}/skill/deep`, to: 'work/deep', mode: 'link' },
        { from: 'skill://tool/deep/k', to: 'work/k' },
        { from: 'workspace://out/a.txt', to: 'work/linked', mode: 'link' },
      ])
      const { files } = await fs.collectOutputs(ws, {
        globs: ['$WORK_DIR/**', 'out/*'],
        inline: true,
        save: true,
        maxTotalBytes: 100,
      })
      // The link and the file that it leads to are one.
      expect(files.map(({ name, content, version }) => [name, content, version])).toEqual([
        ['out/a.txt', 'alpha', 0],
        ['work/deep/k', 'known', 0],
        ['work/inputs/kept', 'v0', 0],
        ['work/k', 'known', 0],
      ])
    })
    await fs.putFiles(ws, [{ path: 'metadata.json', content: 'spoilt' }])
    await fs.stageInputs(ws, [])
    const [metadata] = await fs.collect(ws, ['metadata.json'])
    expect(JSON.parse(metadata?.content ?? '')).toMatchObject({ version: 1, skills: { tool: { mounted: false } } })
    await engine.manager().cleanup(ws)
  })
}

/** Tests of the names that need no more than programs: sessions, environment, layout, registry and spans. */
export function testNamedWorkspaces(at: { readonly sg: WorkspaceSource }): void {
  let engine: SandglassEngine
  let ws: Workspace
  beforeAll(async () => {
    engine = await newSandglassEngine(at.sg)
    ws = await engine.manager().createWorkspace('shared')
  })

  test.each(workspaceCases('interactive_session')['live'] ?? [])('WS-16, WS-18: a session, $name', async (row) => {
    const { cmd, tty = false, flow = [], stdin, env, kill_grace_ms: graceMs } = row as unknown as LiveSession
    const { expect_stdout_contains: shown } = row
    const spec = { cmd: 'sh', args: ['-lc', cmd.slice('sh -lc '.length + 1, -1)], tty }
    const session = await engine.runner().startProgram?.(ws, {
      ...spec,
      ...(stdin === undefined ? {} : { stdin }),
      ...(env === undefined ? {} : { env }),
    })
    if (session === undefined) throw new Error('the engine starts no programs')
    let output = ''
    const readUntil = async (text: string): Promise<void> => {
      while (!output.includes(text)) {
        const poll = await session.poll()
        output += poll.output
        if (poll.status === 'exited' && !output.includes(text)) throw new Error(`it ended without ${text}: ${output}`)
      }
    }
    for (const [, polled, written] of flow.map(
      (step) => /^poll until '(.*)'$|^write '(.*)'\+newline$/.exec(step) ?? [],
    ))
      if (written !== undefined) await session.write(written, true)
      else if (polled !== undefined) await readUntil(polled)
    if (graceMs !== undefined) await session.kill(graceMs)
    while ((await session.poll()).status === 'running');
    const { stdout, stderr, exitCode } = session.runResult()
    const streams = flow.length > 0 && !tty ? ['ready\nout:hello\n', 'err:hello\n'] : [shown ?? stdout, '']
    expect([[stdout, stderr], exitCode === 0]).toEqual([streams, graceMs === undefined])
    await session.close()
  })

  // The host's variables never reach a program, also where the original passes them on by default.
  test.each(workspaceCases('env_scrub')['local_program_env'] ?? [])('WS-13, WS-22: $name', async (row) => {
    const { host = {}, spec, expect: wanted } = row as unknown as ProgramEnvironment
    const before = Object.fromEntries(Object.keys(host).map((name) => [name, process.env[name]]))
    // Empty, because the host itself starts programs that would read them.
    for (const name of Object.keys(host)) process.env[name] = ''
    try {
      const { stdout } = await engine.runner().runProgram(ws, { cmd: '/usr/bin/env', ...spec })
      const lines = stdout.trim().split('\n')
      const inside = Object.fromEntries(
        lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
      )
      expect(Object.keys(host).filter((name) => name in inside)).toEqual([])
      const { PATH = '/usr/local/bin:/usr/bin:/bin' } = spec.env ?? {}
      const own = { ...spec.env, PATH, WORKSPACE_DIR: ws.path }
      expect(inside).toMatchObject(own)
      expect(Object.keys(wanted).filter((name) => !(name in own) && !(name in host))).toEqual([])
      expect(lines.filter((line) => line.startsWith('PATH='))).toHaveLength(1)
    } finally {
      for (const [name, value] of Object.entries(before))
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
    }
  })

  test('WS-01, WS-03, WS-10, WS-12, WS-25, WS-27, WS-28: layout, registry, prefixes, versions and spans are the same on each engine', async () => {
    using heard = hearSpans()
    expect(engine.describe()).toMatchObject({ networkAllowed: false, programs: true, interactive: true })
    await using registry = new WorkspaceRegistry()
    const manager = engine.manager()
    const [one, same] = await Promise.all([registry.acquire(manager, 'one'), registry.acquire(manager, 'one')])
    expect(same).toBe(one)
    const args = ['-c', 'ls $WORKSPACE_DIR; printf a,b > $OUTPUT_DIR/a.csv; cd $RUN_DIR; pwd']
    const { stdout } = await engine.runner().runProgram(one, { cmd: 'sh', args, cwd: '${WORK_DIR}' })
    expect(stdout).toMatch(/^metadata\.json\nout\nruns\nskills\nwork\n\/workspace\/runs\/[^/]+\n$/)
    await withArtifactService(createArtifactService(storeInMemory()), async () => {
      const spec = { globs: ['$OUTPUT_DIR/*'], inline: true, save: true }
      const manifests = [await engine.fs().collectOutputs(one, spec), await engine.fs().collectOutputs(one, spec)]
      const file = { name: 'out/a.csv', mimeType: 'text/csv', content: 'a,b', savedAs: 'out/a.csv' }
      expect(manifests).toEqual(
        [0, 1].map((version) => ({
          files: [{ ...file, version, sizeBytes: 3, truncated: false }],
          limitsHit: false,
          skipped: [],
        })),
      )
    })
    await manager.cleanup(one)
    expect((await registry.acquire(manager, 'one')).id).not.toBe(one.id)
    await registry.close()
    const attributes = { exec_id: 'one' }
    expect(heard.ended).toEqual([
      ['create', { ...attributes, path: '/workspace' }],
      ['run', { ...attributes, cmd: 'sh', cwd: 'work', exit_code: 0, timed_out: false }],
      ['collect', { ...attributes, patterns: ['out/*'], count: 1 }],
      ['collect', { ...attributes, patterns: ['out/*'], count: 1 }],
      ['cleanup', { ...attributes, path: '/workspace' }],
      ['create', { ...attributes, path: '/workspace' }],
      ['cleanup', { ...attributes, path: '/workspace' }],
    ])
  })
}

/** A row of the original's sessions. */
interface LiveSession {
  readonly cmd: string
  readonly tty?: boolean
  readonly flow?: readonly string[]
  readonly stdin?: string
  readonly env?: Record<string, string>
  readonly kill_grace_ms?: number
}

/** A row of the original's environments. */
interface ProgramEnvironment {
  readonly host?: Record<string, string>
  readonly spec: { readonly env?: Record<string, string> }
  readonly expect: Record<string, string>
}
