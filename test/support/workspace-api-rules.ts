import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { storeInMemory } from '../../src/artifacts/index.ts'
import {
  createArtifactService,
  newSandglassEngine,
  type ResourceLimits,
  type RunResult,
  saveArtifactHelper,
  withArtifactService,
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
    const limited = await run(1, { cpuPercent: 20 })
    expect(limited.stderr).toBe('')
    expect(Number(limited.stdout)).toBeGreaterThan(0)
    expect(Number(limited.stdout)).toBeLessThan(0.3)
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
