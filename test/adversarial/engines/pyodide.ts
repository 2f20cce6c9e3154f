import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSandglass } from '../../../src/sandglass.ts'
import { allProcesses, cpuMs } from '../../support/processes.ts'
import { ofHost } from '../../support/resources.ts'
import type { EngineUnderTest, SandboxProcess } from '../driver/engine.ts'

/** The Pyodide engine as it is where there is no bubblewrap: what holds in a box holds it, too. */
export function openEngine(state?: string): EngineUnderTest {
  const cacheDir = state ?? mkdtempSync(join(tmpdir(), 'sandglass-pyodide-'))
  return {
    name: 'pyodide',
    module: import.meta.url,
    state: cacheDir,
    hostPath: cacheDir,
    packagesInside: '/packages',
    readOnly: {},
    refusedBeneath: [],
    open: (options = {}) =>
      createSandglass({ ...options, engine: 'pyodide', pyodide: { cacheDir, bubblewrap: false } }),
    processesOf,
    cpuMsOf: (id) => processesOf(id).reduce((sum, { pid }) => sum + cpuMs(pid), 0),
    sandboxesOf: (host) =>
      allProcesses()
        .filter(({ parent }) => parent === host)
        .flatMap(({ pid }) => idIn(pid) ?? []),
    watchContainers: () => null,
    toldAbout: () => null,
    resources: (_ids, host = process.pid) => ofHost(host),
    // Its processes end with their host, by themselves; nothing else of a sandbox is on the machine.
    remnantsOf: () => Promise.resolve([]),
    livingOf: () => [],
    removesItself: true,
    runDirectories: () => [],
    namesOnHost: () => readdirSync(cacheDir),
    async close() {
      if (state === undefined) rmSync(cacheDir, { recursive: true, force: true })
      await Promise.resolve()
    },
  }
}

/** Each instance is a process with the id of its sandbox in its command line; to the driver the harness is number 1. */
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
