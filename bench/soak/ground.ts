import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dockerEngine, localEngine, pyodideEngine } from '../../src/index.ts'
import { commandLineOf, descendantsOf, processOf } from '../../test/support/processes.ts'
import { containerId, dockerRemains, processesNaming } from './docker-remains.ts'
import type { EngineName } from './kind.ts'
import { firstProcessOf, localRemains } from './local-remains.ts'
import { pyodideRemains } from './pyodide-remains.ts'
import { entriesOf, type Place, type Remains } from './remains.ts'
import { type WatchedEngine, watched } from './watched-engine.ts'

/** An engine with directories of its own, and what can be seen of its sandboxes from outside. */
export interface Ground {
  readonly name: EngineName
  readonly engine: WatchedEngine
  /** What is there and belongs to none of the living sandboxes; which those are, the engine knows. */
  remains(of?: Pick<WatchedEngine, 'living' | 'ended'>): Promise<Remains>
  /** How many processes all its sandboxes have. */
  processes(): number
  /** SIGKILL for what runs scripts in a sandbox. */
  killSandbox(sandboxId: string): void
  /** From now on what lies in its directories belongs there. */
  settle(): void
  /** Gives the engine back and removes its directories. */
  close(): Promise<void>
}

/** Makes it. TMPDIR of this process leads into it until it is closed, so that temporary files of others do not count. */
export function makeGround(name: EngineName): Ground {
  const before = process.env['TMPDIR']
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-soak-'))
  chmodSync(directory, 0o755) // sandboxes enter it by uids of their own
  for (const part of ['state', 'tmp', 'cache']) mkdirSync(join(directory, part))
  process.env['TMPDIR'] = join(directory, 'tmp')
  let place: Place = { directory, known: new Set(entriesOf(directory)) }
  const image = process.env['BENCH_DOCKER_IMAGE']
  const engine = watched(
    {
      local: () => localEngine({ stateDir: join(directory, 'state') }),
      docker: () => dockerEngine(image === undefined ? {} : { image }),
      pyodide: () => pyodideEngine({ cacheDir: join(directory, 'cache') }),
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
    settle() {
      // What names a sandbox is looked for by itself: of one that has ended nothing may be there.
      const sandboxes = [...engine.living.keys(), ...engine.ended.keys()]
      const there = entriesOf(directory).filter((path) => !sandboxes.some((id) => path.includes(id)))
      place = { directory, known: new Set(there) }
    },
    async close() {
      await engine.close()
      if (before === undefined) delete process.env['TMPDIR']
      else process.env['TMPDIR'] = before
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** @throws Error when there is no such process: the sandbox runs a script, so there is one. */
function targets(name: EngineName, engine: WatchedEngine, sandboxId: string): number[] {
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
