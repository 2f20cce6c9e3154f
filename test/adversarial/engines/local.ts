import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { listRemnants } from '../../../src/engines/local/index.ts'
import { createSandglass } from '../../../src/sandglass.ts'
import { cpuMs, processOf } from '../../support/processes.ts'
import { resourcesOf } from '../../support/resources.ts'
import { openDirectory } from '../../support/state-directory.ts'
import type { EngineUnderTest } from '../driver/engine.ts'

/** The local engine with a state directory of its own, or with one that another process shares. */
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
    refusedBeneath: [],
    open: (options = {}) => createSandglass({ ...options, engine: 'local', local: { stateDir } }),
    processesOf,
    cpuMsOf: (sandboxId) => membersOf(stateDir, sandboxId).reduce((sum, pid) => sum + cpuMs(pid), 0),
    // The state directory is the test's own: every record in it is of its hosts.
    sandboxesOf: () => recordsOf(stateDir),
    watchContainers: () => null,
    toldAbout: () => null,
    resources: (sandboxIds, host) => resourcesOf(stateDir, sandboxIds, host),
    async remnantsOf(ids) {
      const remnants = await listRemnants(stateDir)
      return remnants
        .filter(({ sandbox }) => ids.has(sandbox ?? ''))
        .map(({ kind, id, owner }) => ({ kind, id, owner }))
    },
    livingOf: (ids) =>
      [...ids].flatMap((id) =>
        [...launchersOf(processesOf(id)), ...processesOf(id).map(({ pid }) => pid)].map((pid) => ({
          kind: 'process',
          id: String(pid),
          owner: 'alive' as const,
        })),
      ),
    removesItself: false,
    // Workspaces live in memory, inside: nothing of a run is ever a directory of the host but its record.
    runDirectories: () =>
      readdirSync(stateDir).filter((name) => !['slots', 'sandboxes', 'staged', 'private'].includes(name)),
    namesOnHost: () => readdirSync(stateDir, { recursive: true, encoding: 'utf8' }),
    async close() {
      if (state === undefined) rmSync(stateDir, { recursive: true, force: true })
      await Promise.resolve()
    },
  }
}

/** Ids of the sandboxes that a state directory has records of. */
export function recordsOf(stateDir: string): string[] {
  return readdirSync(join(stateDir, 'sandboxes')).flatMap((name) => /^(.*)\.json$/.exec(name)?.[1] ?? [])
}

/** Bubblewrap's own process stays outside of the group. */
function launchersOf(inside: ReturnType<EngineUnderTest['processesOf']>): number[] {
  return inside.flatMap(({ insidePid, pid }) => (insidePid === 1 ? (processOf(pid)?.parent ?? []) : []))
}

function membersOf(stateDir: string, sandboxId: string): number[] {
  const groups = groupsOf(stateDir, sandboxId)
  const pids = groups.flatMap((path) => readLines(join(path, 'cgroup.procs')).map(Number))
  return [...new Set(pids)]
}

/** The control groups of a sandbox, from its record; none when it is gone. */
function groupsOf(stateDir: string, sandboxId: string): readonly string[] {
  const [text] = readLines(join(stateDir, 'sandboxes', `${sandboxId}.json`))
  if (text === undefined) return []
  const { cgroups } = JSON.parse(text) as { cgroups: readonly string[] }
  if (cgroups.length === 0) throw new Error('who lives in a sandbox is seen by its control group: none here')
  return cgroups
}

function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean)
  } catch {
    return []
  }
}
