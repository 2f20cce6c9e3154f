import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { listResources } from '../../../src/engines/local/index.ts'
import { createSandglass } from '../../../src/sandglass.ts'
import { cpuMs, processOf } from '../../../test/support/processes.ts'
import { resourcesOf } from '../../../test/support/resources.ts'
import { openDirectory } from '../../../test/support/state-directory.ts'
import type { EngineUnderTest } from '../driver/engine.ts'

/** The local engine, with a new state directory or with the given one of another process. */
export function openEngine(state?: string): EngineUnderTest {
  const stateDir = state ?? openDirectory('adversarial')
  const processesOf: EngineUnderTest['processesOf'] = (id) =>
    membersOf(stateDir, id).flatMap((pid) => processOf(pid) ?? [])
  return {
    name: 'local',
    module: import.meta.url,
    state: stateDir,
    hostPath: stateDir,
    packagesInside: '/packages',
    readOnly: { '/dev': 'EROFS' },
    blockedByEngineFilter: [],
    open: (options = {}) => createSandglass({ ...options, engine: 'local', local: { stateDir } }),
    processesOf,
    cpuMsOf: (sandboxId) => membersOf(stateDir, sandboxId).reduce((sum, pid) => sum + cpuMs(pid), 0),
    // No other program uses this state directory, so every record belongs to a host of the test.
    sandboxesOf: () => recordsOf(stateDir),
    watchContainers: () => null,
    inspectFromHost: () => null,
    resources: (sandboxIds, host) => resourcesOf(stateDir, sandboxIds, host),
    async resourcesOf(ids) {
      const resources = await listResources(stateDir)
      return resources
        .filter(({ sandbox }) => ids.has(sandbox ?? ''))
        .map(({ kind, id, owner }) => ({ kind, id, owner }))
    },
    livingResourcesOf: (ids) =>
      [...ids].flatMap((id) =>
        [...launchersOf(processesOf(id)), ...processesOf(id).map(({ pid }) => pid)].map((pid) => ({
          kind: 'process',
          id: String(pid),
          owner: 'alive' as const,
        })),
      ),
    removesItself: false,
    // Workspaces are in the memory of the sandbox, so a run must not add a directory on the host.
    runDirectories: () =>
      readdirSync(stateDir).filter((name) => !['slots', 'sandboxes', 'staged', 'private'].includes(name)),
    namesOnHost: () => readdirSync(stateDir, { recursive: true, encoding: 'utf8' }),
    async close() {
      if (state === undefined) rmSync(stateDir, { recursive: true, force: true })
      await Promise.resolve()
    },
  }
}

/** Ids of the sandboxes with a record in a state directory. */
export function recordsOf(stateDir: string): string[] {
  return readdirSync(join(stateDir, 'sandboxes')).flatMap((name) => /^(.*)\.json$/.exec(name)?.[1] ?? [])
}

/** The processes of bubblewrap, which are outside the control group. */
function launchersOf(inside: ReturnType<EngineUnderTest['processesOf']>): number[] {
  return inside.flatMap(({ insidePid, pid }) => (insidePid === 1 ? (processOf(pid)?.parent ?? []) : []))
}

function membersOf(stateDir: string, sandboxId: string): number[] {
  const groups = groupsOf(stateDir, sandboxId)
  const pids = groups.flatMap((path) => readLines(join(path, 'cgroup.procs')).map(Number))
  return [...new Set(pids)]
}

/** The control groups of a sandbox, from its record; empty when the record is gone. */
function groupsOf(stateDir: string, sandboxId: string): readonly string[] {
  const [text] = readLines(join(stateDir, 'sandboxes', `${sandboxId}.json`))
  if (text === undefined) return []
  const { cgroups } = JSON.parse(text) as { cgroups: readonly string[] }
  if (cgroups.length === 0)
    throw new Error(
      'the adversarial cases need control groups to list the processes of a sandbox; run them on a host with cgroups',
    )
  return cgroups
}

function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean)
  } catch {
    return []
  }
}
