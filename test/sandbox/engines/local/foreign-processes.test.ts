import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { CgroupHost } from '../../../../src/engines/local/cgroup-host.ts'
import { listResources, pruneOrphans, type LocalResource } from '../../../../src/engines/local/index.ts'
import { startCode } from '../../../../src/engines/local/mark.ts'
import { findResources } from '../../../../src/engines/local/resources.ts'
import type { SandboxRecord } from '../../../../src/engines/local/records.ts'
import { StateDirectory } from '../../../../src/engines/local/state.ts'
import { requireLocalEngine } from '../../../support/local-engine.ts'
import { processOf } from '../../../support/processes.ts'
import { openDirectory, scopedDirectory } from '../../../support/engines/local/state-dir.ts'

const { skip } = await requireLocalEngine()
const started: ChildProcess[] = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

describe.skipIf(skip)('a process that no host here started', () => {
  /** Sleeps under a command line that begins with these words. */
  const sleeper = async (...words: string[]): Promise<number> => {
    const child = spawn('/bin/sh', ['-c', 'read forever', ...words], { stdio: ['pipe', 'ignore', 'ignore'] })
    started.push(child)
    await once(child, 'spawn')
    return child.pid ?? 0
  }
  /** A state directory with the record of a sandbox whose owner is gone. */
  const withDeadOwner = (id: string): ReturnType<typeof openDirectory> => {
    const path = openDirectory()
    mkdirSync(join(path, 'sandboxes'))
    mkdirSync(join(path, 'slots'))
    const record: SandboxRecord = {
      id,
      slot: 0,
      owner: '3f0f3c55-0000-4000-8000-000000000000',
      uid: null,
      host_pid: 1,
      cgroups: [],
      created_at: new Date().toISOString(),
    }
    writeFileSync(join(path, 'sandboxes', `${id}.json`), JSON.stringify(record))
    return path
  }
  const find = (resources: readonly LocalResource[], pid: number): LocalResource | undefined =>
    resources.find(({ kind, id }) => kind === 'process' && id === String(pid))

  test('is neither listed nor killed merely because it names a sandbox of a dead owner', async () => {
    const id = 'sg-named'
    const state = withDeadOwner(id)
    const pids = [await sleeper(id), await sleeper(startCode(id)), await sleeper('-c', `${startCode(id)} `, '{}')]
    const listed = await listResources(state)
    expect(pids.map((pid) => find(listed, pid))).toEqual([undefined, undefined, undefined])
    await pruneOrphans(state)
    expect(pids.filter((pid) => processOf(pid) === undefined)).toEqual([])
    rmSync(state, { recursive: true })
  })

  test('is listed with an unknown owner, and left alone, when its sandbox has no record here', async () => {
    using state = scopedDirectory()
    const pid = await sleeper('-c', startCode('sg-elsewhere'), '{}')
    const resource = { kind: 'process', id: String(pid), sandbox: 'sg-elsewhere', owner: 'unknown', uid: null }
    expect(find(await listResources(state.path), pid)).toEqual(resource)
    expect(find(await pruneOrphans(state.path), pid)).toBeUndefined()
    expect(processOf(pid)).toBeDefined()
  })

  test('is identified by its control groups if its command line does not name the sandbox, and listed once', async () => {
    using state = scopedDirectory()
    const pid = await sleeper()
    const parents = ['memory', 'pids'].map((controller) => {
      const path = join(state.path, controller, 'sandglass')
      mkdirSync(join(path, 'sg-grouped'), { recursive: true })
      writeFileSync(join(path, 'sg-grouped/cgroup.procs'), `${pid}\n`)
      return { path, controllers: [controller] }
    })
    const host: CgroupHost = { version: 1, enforces: [], parents, problems: [] }
    const { processes, cgroups } = await findResources(new StateDirectory(state.path), host)
    const common = { sandbox: 'sg-grouped', owner: 'unknown', uid: null }
    expect(processes.map(({ resource }) => resource).filter(({ sandbox }) => sandbox === 'sg-grouped')).toEqual([
      { kind: 'process', id: String(pid), ...common },
    ])
    expect(cgroups.map(({ resource }) => resource)).toEqual(
      parents.map(({ path }) => ({ kind: 'cgroup', id: join(path, 'sg-grouped'), ...common })),
    )
  })

  test('is killed when it has every mark of a sandbox whose owner is dead', async () => {
    const id = 'sg-dead'
    const state = withDeadOwner(id)
    const pid = await sleeper('-c', startCode(id), '{}')
    expect(find(await pruneOrphans(state), pid)).toEqual({
      kind: 'process',
      id: String(pid),
      sandbox: id,
      owner: 'gone',
      uid: null,
    })
    expect(existsSync(join(state, 'sandboxes', `${id}.json`))).toBe(false)
    expect(await listResources(state).then((all) => all.filter(({ sandbox }) => sandbox === id))).toEqual([])
    rmSync(state, { recursive: true })
  })
})
