import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dockerEngine, localEngine, pyodideEngine } from '../../src/index.ts'
import { commandLineOf, descendantsOf, processOf } from '../../test/support/processes.ts'
import { containerId, dockerRemains, processesNaming } from './docker-remains.ts'
import type { MachineEngine } from '../../test/support/walls.ts'
import { firstProcessOf, localRemains } from './local-remains.ts'
import { pyodideRemains } from './pyodide-remains.ts'
import { entriesOf, type Place, type Remains } from './remains.ts'
import { type WatchedEngine, watchEngine } from './watched-engine.ts'

/** An engine with private directories, and functions that inspect its sandboxes from the host. */
export interface SoakEnvironment {
  readonly name: MachineEngine
  readonly engine: WatchedEngine
  /** Resources on the machine that belong to no living sandbox of the engine. */
  remains(of?: Pick<WatchedEngine, 'living' | 'ended'>): Promise<Remains>
  /** Number of processes of all its sandboxes. */
  processes(): number
  /** Sends SIGKILL to the process that runs scripts in a sandbox. */
  killSandbox(sandboxId: string): void
  /** Accepts the files that exist now in its directories: they no longer count as remains. */
  noteExistingFiles(): void
  /** Closes the engine and removes its directories. */
  close(): Promise<void>
}

/** Opens an environment. Until it is closed, TMPDIR of this process points into it, so that files of other programs do not count. */
export function openEnvironment(name: MachineEngine): SoakEnvironment {
  const before = process.env['TMPDIR']
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-soak-'))
  chmodSync(directory, 0o755) // sandboxes enter it by uids of their own
  for (const part of ['state', 'tmp', 'cache']) mkdirSync(join(directory, part))
  process.env['TMPDIR'] = join(directory, 'tmp')
  let place: Place = { directory, known: new Set(entriesOf(directory)) }
  const image = process.env['BENCH_DOCKER_IMAGE']
  const engine = watchEngine(
    {
      local: () => localEngine({ stateDir: join(directory, 'state') }),
      docker: () => dockerEngine(image === undefined ? {} : { image }),
      // Without a reserve the number of processes follows from that of sandboxes.
      pyodide: () => pyodideEngine({ cacheDir: join(directory, 'cache'), reserveBytes: 0 }),
    }[name](),
  )
  const remains = { local: localRemains, docker: dockerRemains, pyodide: pyodideRemains }[name]
  return {
    name,
    engine,
    remains: (of = engine) => remains(place, of),
    processes() {
      if (name !== 'docker') return descendantsOf(process.pid).length
      return processesNaming([...engine.living.values()].flatMap((one) => containerId(one) ?? [])).length
    },
    killSandbox(sandboxId) {
      for (const pid of targets(name, engine, sandboxId)) process.kill(pid, 'SIGKILL')
    },
    noteExistingFiles() {
      // Files with the name of a sandbox stay unknown: they must be gone when the sandbox has ended.
      const sandboxes = [...engine.living.keys(), ...engine.ended.keys()]
      const existing = entriesOf(directory).filter((path) => !sandboxes.some((id) => path.includes(id)))
      place = { directory, known: new Set(existing) }
    },
    async close() {
      await engine.close()
      if (before === undefined) delete process.env['TMPDIR']
      else process.env['TMPDIR'] = before
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** The processes to kill. @throws Error when there are none, because the sandbox must be running a script. */
function targets(name: MachineEngine, engine: WatchedEngine, sandboxId: string): number[] {
  const found = {
    local: () => firstProcessOf(sandboxId) ?? [],
    docker: () =>
      processesNaming([engine.living.get(sandboxId)].flatMap((one) => containerId(one) ?? [])).filter(
        (pid) => processOf(pid)?.insidePid === 1,
      ),
    pyodide: () => descendantsOf(process.pid).filter((pid) => commandLineOf(pid).includes(sandboxId)),
  }[name]()
  const pids = [found].flat()
  if (pids.length === 0) throw new Error(`sandbox ${sandboxId} has no process to kill`)
  return pids
}
