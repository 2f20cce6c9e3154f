import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../test/support/eventually.ts'
import { commandLineOf, descendantsOf, processOf } from '../../test/support/processes.ts'
import { processesIn } from '../../test/support/containers.ts'
import type { PeersDaemon } from './daemon.ts'
import { makeHome, startDriver } from './driver.ts'
import type { MeasuredRow } from './result.ts'
import { SCRIPT } from './timings.ts'

const LOOP = 'while True:\n    pass'
const LOOK_AFTER_MS = 10_000
/** The longest time until a peer has started its first process. */
const START_MS = 20_000

/** A process; its start time distinguishes it from a later one with the same pid. */
interface ProcessSeen {
  readonly pid: number
  readonly began: string
  readonly words: string
}

/**
 * The processes, containers and files that exist some time after the host process was killed while a script ran. They are
 * removed afterwards. Files count below the driver's home, temporary and working directory, without those of a successful run.
 */
export async function findOrphans(
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  daemon: PeersDaemon | undefined,
  afterMs: number = LOOK_AFTER_MS,
): Promise<MeasuredRow['orphans']> {
  const home = makeHome()
  try {
    const orderly = startDriver(command, home, env)
    await orderly.ask('open')
    await orderly.ask('run', { code: SCRIPT })
    await orderly.close()
    for (const { id } of daemon?.containers() ?? []) daemon?.remove(id)
    const filesBefore = new Set(home.files())

    const driver = startDriver(command, home, env)
    await driver.ask('open')
    const endless = driver.ask('run', { code: LOOP }).then(
      () => 'it ended',
      () => undefined, // the driver is killed on purpose
    )
    const list = (): number[] => [...descendantsOf(driver.pid), ...pidsInContainers(daemon)]
    // A peer whose scripts run in the process of its host starts no other.
    await eventually(() => (list().length > 0 ? undefined : 'nothing is started yet'), START_MS)
    const early = await Promise.race([endless, sleep(1500)])
    if (early !== undefined) throw new Error('the endless script ended before the driver was killed')
    const started = list().flatMap(describeProcess)
    await driver.kill()
    await sleep(afterMs)

    const parents = started.filter(isAlive)
    const below = parents.flatMap(({ pid }) => descendantsOf(pid)).flatMap(describeProcess)
    const alive = new Map(
      [...parents, ...below, ...pidsInContainers(daemon).flatMap(describeProcess)].map((each) => [each.pid, each]),
    )
    const containers = daemon?.containers() ?? []
    const found = {
      processes: [...alive.values()].map(({ words }) => words).toSorted(),
      containers: containers.length,
      files: home.files().filter((path) => !filesBefore.has(path)),
    }
    for (const each of alive.values()) if (isAlive(each)) process.kill(each.pid, 'SIGKILL')
    for (const { id } of containers) daemon?.remove(id)
    return found
  } finally {
    home.remove()
  }
}

function pidsInContainers(daemon: PeersDaemon | undefined): number[] {
  return daemon?.containers().flatMap(({ id }) => processesIn(id).map(({ pid }) => pid)) ?? []
}

/** A process by its pid; empty when it is gone. */
function describeProcess(pid: number): ProcessSeen[] {
  const began = startTicksOf(pid)
  if (began === undefined || processOf(pid) === undefined) return []
  const [program = '', ...args] = commandLineOf(pid).split('\0').slice(0, 3)
  const words = [basename(program), ...args].join(' ').replaceAll(/\s+/g, ' ').trim()
  return [{ pid, began, words: words.slice(0, 60) }]
}

function isAlive({ pid, began }: ProcessSeen): boolean {
  return processOf(pid) !== undefined && startTicksOf(pid) === began
}

/** The start time of a process in clock ticks since the boot (field 22 of its `stat`); undefined when it is gone. */
function startTicksOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined
  }
}
