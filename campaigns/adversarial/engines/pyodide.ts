import { readdirSync, readFileSync } from 'node:fs'
import { createSandglass } from '../../../src/sandglass.ts'
import { copyOfCache } from '../../../test/support/engines/pyodide/shared-cache.ts'
import { allProcesses, cpuMs } from '../../../test/support/processes.ts'
import { ofHost } from '../../../test/support/resources.ts'
import type { EngineUnderTest, SandboxProcess } from '../driver/engine.ts'

/** The Pyodide engine without bubblewrap, its weaker form: the cases must pass without that second wall. */
export function openEngine(state?: string): EngineUnderTest {
  const own = state === undefined ? copyOfCache() : undefined
  const cacheDir = state ?? own?.path ?? ''
  return {
    name: 'pyodide',
    module: import.meta.url,
    state: cacheDir,
    hostPath: cacheDir,
    packagesInside: '/packages',
    readOnly: {},
    blockedByEngineFilter: [],
    // Without a reserve an idle sandbox has exactly one process, so that one that a script left is one too many.
    open: (options = {}) =>
      createSandglass({ ...options, engine: 'pyodide', pyodide: { cacheDir, bubblewrap: false, reserveBytes: 0 } }),
    processesOf,
    cpuMsOf: (id) => processesOf(id).reduce((sum, { pid }) => sum + cpuMs(pid), 0),
    sandboxesOf: (host) =>
      allProcesses()
        .filter(({ parent }) => parent === host)
        .flatMap(({ pid }) => idIn(pid) ?? []),
    watchContainers: () => null,
    inspectFromHost: () => null,
    resources: (_ids, host = process.pid) => ofHost(host),
    // Its processes end with their host, and a sandbox has no other resources on the machine.
    resourcesOf: () => Promise.resolve([]),
    livingResourcesOf: () => [],
    removesItself: true,
    runDirectories: () => [],
    namesOnHost: () => readdirSync(cacheDir),
    async close() {
      own?.[Symbol.dispose]()
      await Promise.resolve()
    },
  }
}

/** Each instance is a process with the sandbox id in its command line. The driver expects pid 1 for the harness. */
function processesOf(id: string): SandboxProcess[] {
  return allProcesses()
    .filter(({ pid }) => idIn(pid) === id)
    .map(({ pid, uid }) => ({ pid, uid, insidePid: 1 }))
}

function idIn(pid: number): string | undefined {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    const at = words.findIndex((word) => /\/pyodide\/guest\/main\.[jt]s$/.test(word))
    return at === -1 ? undefined : words[at + 1]
  } catch {
    return undefined
  }
}
