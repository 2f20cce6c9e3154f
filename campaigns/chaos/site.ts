import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { MachineEngine } from '../../test/support/walls.ts'
import { listResources } from '../../src/engines/local/index.ts'
import type { EngineUnderTest, SandboxProcess } from '../adversarial/driver/engine.ts'
import { openEngine as openDocker } from '../adversarial/engines/docker.ts'
import { openEngine as openLocal } from '../adversarial/engines/local.ts'
import { openEngine as openPyodide } from '../adversarial/engines/pyodide.ts'
import { type PrivateDaemon, startDaemon } from '../../test/support/docker-daemon.ts'
import { containers } from '../../test/support/containers.ts'
import { processOf } from '../../test/support/processes.ts'
import { openDirectory } from '../../test/support/state-directory.ts'
import { type SmallDisk, makeSmallDisk } from './small-disk.ts'

/** A private test site for hosts: an engine with its state, a small disk and, for Docker, a daemon. */
export interface Site extends AsyncDisposable {
  readonly engine: EngineUnderTest
  /** Contains the state directory, the temporary directory and the journal. */
  readonly disk: SmallDisk
  readonly temporary: string
  readonly journal: string
  readonly daemon: PrivateDaemon | undefined
  /** Records and returns the sandboxes that a host has now. */
  look(host: number): readonly string[]
  /** Orphans of sandboxes that a living host no longer has; must be empty. */
  left(host: number | undefined): Promise<readonly string[]>
}

/** The processes of a sandbox by role; undefined for a role that an engine does not have. */
export interface Roles {
  readonly broker: number | undefined
  readonly zygote: number | undefined
  /** The bubblewrap process. */
  readonly launcher: number | undefined
  readonly all: readonly number[]
}

/** Prefix of the directory name of a site, before the pid of its driver. */
const SITE = 'chaos'
const MAX_SANDBOXES = 3 + 1
/** Entries of the state directory of the local engine. */
const OWN_ENTRIES: ReadonlySet<string> = new Set(['slots', 'sandboxes', 'staged', 'private'])
const DISK_MIB = { local: 24, docker: 8, pyodide: 64 } as const
const DAEMON_BYTES = 1536 * 1024 * 1024

/** Makes a site for an engine. Docker needs an image, which is copied from the daemon at DOCKER_HOST. */
export async function openSite(name: MachineEngine, image = ''): Promise<Site> {
  removeOrphans()
  const directory = openDirectory(`${SITE}-${process.pid}`)
  const cleanUpAtExit = (): void => removeSite(directory)
  process.once('exit', cleanUpAtExit)
  const disk = makeSmallDisk(directory, DISK_MIB[name])
  const makeFolder = (folder: string): string => {
    const path = join(disk.path, folder)
    mkdirSync(path, { mode: 0o755 })
    return path
  }
  const [state, temporary, journal] = [makeFolder('state'), makeFolder('tmp'), makeFolder('journal')]
  let daemon: PrivateDaemon | undefined
  if (name === 'docker') {
    daemon = await startDaemon({ diskBytes: DAEMON_BYTES })
    await daemon.load(image)
  }
  const engine = {
    local: () => openLocal(state),
    pyodide: () => openPyodide(state),
    docker: () => openDocker(JSON.stringify({ image, host: daemon?.host ?? '' })),
  }[name]()
  const seen = new Set<string>()
  const look: Site['look'] = (host) => {
    const ids = engine.sandboxesOf(host)
    for (const id of ids) {
      // The engine remembers the containers that it has seen, and can then find their orphans.
      if (!seen.has(id)) engine.processesOf(id)
      seen.add(id)
    }
    return ids
  }
  return {
    engine,
    disk,
    temporary,
    journal,
    daemon,
    look,
    async left(host) {
      const living = new Set(host === undefined ? [] : look(host))
      const dead = new Set([...seen].filter((id) => !living.has(id)))
      const found = [
        ...(living.size > MAX_SANDBOXES ? [`${living.size} sandboxes of a pool of three`] : []),
        ...(await engine.resourcesOf(dead)).map(({ kind, id, owner }) => `${kind} ${id} (${owner})`),
        ...[...dead].flatMap((id) => engine.processesOf(id).map(({ pid }) => `process ${pid} of ${id}`)),
        ...groupsOf(engine, dead, host),
        // The daemon is private, so a container that the host does not have is an orphan.
        ...(daemon === undefined ? [] : containers(daemon.host))
          .filter((container) => !living.has(container.name))
          .map((container) => `container ${container.name}`),
        ...readdirSync(temporary).map((file) => `temporary file ${file}`),
        ...mountsBelow(directory)
          .filter((point) => point !== disk.path)
          .map((point) => `mount ${point}`),
        ...(name === 'local' ? await inState(state, host) : []),
      ]
      // A clean sandbox stays clean. Forget it, or the checks would grow with each fault.
      if (found.length === 0) for (const id of dead) seen.delete(id)
      return found
    },
    async [Symbol.asyncDispose]() {
      await daemon?.close()
      process.removeListener('exit', cleanUpAtExit)
      removeSite(directory)
    },
  }
}

/** Unmounts everything below a directory and removes it. Synchronous, because it also runs at exit. */
function removeSite(directory: string): void {
  for (const point of mountsBelow(directory).toReversed()) {
    if (spawnSync('umount', [point]).status !== 0) spawnSync('umount', ['--lazy', point])
  }
  rmSync(directory, { recursive: true, force: true })
}

/** Removes the sites of drivers that were killed. */
function removeOrphans(): void {
  for (const name of readdirSync('/tmp')) {
    const pid = new RegExp(`^sandglass-${SITE}-(\\d+)-`).exec(name)?.[1]
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) removeSite(join('/tmp', name))
  }
}

/** Finds the roles of the processes of a sandbox. */
export function rolesIn(processes: readonly SandboxProcess[]): Roles {
  const broker = processes.find(({ insidePid }) => insidePid === 1)?.pid
  const zygote = processes.find(({ pid }) => broker !== undefined && processOf(pid)?.parent === broker)?.pid
  const parent = broker === undefined ? undefined : processOf(broker)?.parent
  const launcher = parent !== undefined && isBubblewrap(parent) ? parent : undefined
  return { broker, zygote, launcher, all: processes.map(({ pid }) => pid) }
}

function isBubblewrap(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'bwrap'
  } catch {
    return false
  }
}

/** Control groups and mounts with the name of a sandbox or container. */
function groupsOf(engine: EngineUnderTest, dead: ReadonlySet<string>, host: number | undefined): string[] {
  if (dead.size === 0) return []
  const { 'control groups': groups = [], mounts = [] } = engine.resources(dead, host ?? process.pid)
  return [
    ...groups.map((path) => `control group ${path}`),
    ...(engine.name === 'docker' ? mounts.map((line) => `mount ${line}`) : []),
  ]
}

function mountsBelow(directory: string): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((point) => point.startsWith(`${directory}/`))
}

/** Orphans in a state directory: resources and locks of dead hosts, corrupt records, directories and unknown files. */
async function inState(state: string, host: number | undefined): Promise<string[]> {
  const records = readdirSync(join(state, 'sandboxes'))
  const resources = await listResources(state)
  const wrong = resources.filter(({ kind, owner, sandbox }) => {
    if (kind === 'corrupt-record' || kind === 'directory') return true
    if (kind === 'uid-lock') return sandbox === null && (owner === 'gone' || host === undefined)
    return owner === 'gone' && records.includes(`${sandbox}.json`) // other hosts on this machine do not belong to this site
  })
  return [
    ...wrong.map(({ kind, id, owner }) => `${kind} ${id} (${owner})`),
    ...(host === undefined ? records : []).map((record) => `record ${record}`),
    ...readdirSync(state)
      .filter((entry) => !OWN_ENTRIES.has(entry))
      .map((entry) => `state file ${entry}`),
  ]
}
