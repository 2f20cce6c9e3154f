import { createSandglass } from '../../../src/sandglass.ts'
import type { KubernetesEngineOptions } from '../../../src/engines/kubernetes/index.ts'
import { connect } from '../../../src/engines/kubernetes/cluster.ts'
import { listResources } from '../../../src/engines/kubernetes/pods.ts'
import { allProcesses, commandLineOf, cpuMs } from '../../../test/support/processes.ts'
import { ofHost } from '../../../test/support/resources.ts'
import type { EngineUnderTest } from '../driver/engine.ts'

/** The engine kubernetes. The node of its cluster must be this machine, because the tests inspect processes. */
export function openEngine(state: string): EngineUnderTest {
  const options = JSON.parse(state) as KubernetesEngineOptions
  /** The uids of known sandboxes: no other process of the node has the same. */
  const uids = new Map<string, number>()
  const seen = new Set<string>()
  const uidOf = (sandboxId: string): number | undefined => {
    if (sandboxId !== '' && !uids.has(sandboxId)) {
      // PID 1 of a sandbox has the name of its pod among its arguments.
      const broker = allProcesses().find(
        ({ pid, insidePid }) => insidePid === 1 && commandLineOf(pid).includes(`"name":"${sandboxId}"`),
      )
      if (broker !== undefined) uids.set(sandboxId, broker.uid)
    }
    if (sandboxId !== '') seen.add(sandboxId)
    return uids.get(sandboxId)
  }
  const processesOf: EngineUnderTest['processesOf'] = (sandboxId) => {
    const uid = uidOf(sandboxId)
    return uid === undefined ? [] : allProcesses().filter((one) => one.uid === uid)
  }
  const living = (): string[] => [...seen].filter((id) => processesOf(id).length > 0)

  return {
    name: 'kubernetes',
    module: import.meta.url,
    state,
    hostPath: '/var/lib/kubelet',
    packagesInside: '/packages',
    // In a container, only root may write to /dev.
    readOnly: { '/dev': 'EACCES' },
    // The default seccomp profile of runtimes requires CAP_SYS_NICE for mbind.
    blockedByEngineFilter: ['mbind'],
    open: (given = {}) => createSandglass({ ...given, engine: 'kubernetes', kubernetes: options }),
    processesOf,
    cpuMsOf: (sandboxId) => processesOf(sandboxId).reduce((sum, { pid }) => sum + cpuMs(pid), 0),
    sandboxesOf: living,
    watchContainers: () => null,
    inspectFromHost: () => null,
    resources: (_ids, owner = process.pid) => ({ ...ofHost(owner), sandboxes: living() }),
    async resourcesOf(ids) {
      const { pods } = await listResources(await connect(options))
      return pods
        .filter(({ name }) => ids.has(name))
        .map(({ name, owner }) => ({ kind: 'pod', id: name, owner: owner === 'dead' ? 'gone' : owner }))
    },
    livingResourcesOf: (ids) =>
      living()
        .filter((name) => ids.has(name))
        .map((name) => ({ kind: 'pod', id: name, owner: 'alive' })),
    removesItself: true,
    runDirectories: () => [],
    namesOnHost: () => living(),
    close: () => Promise.resolve(),
  }
}
