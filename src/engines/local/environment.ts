import { closeSync, openSync } from 'node:fs'
import { messageOf, SandglassError, shortageError } from '../../errors/index.ts'
import type { EnforcedLimit } from '../../sandbox/index.ts'
import { type CgroupHost, findCgroups } from './cgroup-host.ts'
import { OrphanRetry, removeOrphans } from './orphans.ts'
import type { LocalEngineOptions } from './options.ts'
import { isHeldToProcessLimit } from './process-limit.ts'
import { findBwrap, findPython, type FoundPython } from './programs.ts'
import type { Slot } from './slots.ts'
import { DirectoryStage, stageHarness } from './staged-copies.ts'
import { touch } from './staging.ts'
import { defaultStateDir } from './state-path.ts'
import { StateDirectory } from './state.ts'
import { firstSandboxUid, UidPool } from './uids.ts'

/** The parts of this machine that the engine uses, found at its first use. */
export interface EngineEnvironment {
  readonly state: StateDirectory
  readonly slot: Slot
  /** Present on a host that is root and has more than one id: each sandbox gets a uid of its own. */
  readonly uids: UidPool | undefined
  readonly bwrap: string
  readonly python: FoundPython
  readonly harness: string
  readonly directories: DirectoryStage
  readonly cgroups: CgroupHost
  readonly orphans: OrphanRetry
  /** True if RLIMIT_NPROC limits sandboxes, with and without a control group. */
  readonly countsProcesses: boolean
  /** The reason why orphans could not be removed; undefined if they were. */
  readonly keptOrphans: string | undefined
}

/** Descriptors that a sandbox needs while it starts: both ends of six pipes, and some for Node. */
const DESCRIPTORS = 16
/** Limits that hold without control groups: sized file systems, counted frames, clocks. */
const ALWAYS: readonly EnforcedLimit[] = ['disk', 'output', 'wall']
const REMEDY = 'give the host a control group to write (docs/running-in-a-container.md), or leave the limit out: '
/** The remedy for each missing limit, and the limit that is in force instead. */
const MISSING: Readonly<Partial<Record<EnforcedLimit, string>>> = {
  memory: `${REMEDY}each process alone is then limited to the default by RLIMIT_AS`,
  pids: `${REMEDY}the number of processes is then not limited, because the kernel counts no processes of root`,
  cpu: `${REMEDY}CPU time is then not limited`,
}

/**
 * Finds the programs that every sandbox of this process needs, prepares the state directory and takes a slot.
 * @throws SandglassError with the code of what is missing.
 */
export async function prepare(options: LocalEngineOptions): Promise<EngineEnvironment> {
  if (process.platform !== 'linux') {
    throw new SandglassError('platform_unsupported', `the local engine runs on Linux only, this is ${process.platform}`)
  }
  if (process.arch !== 'x64' && process.arch !== 'arm64') {
    throw new SandglassError(
      'architecture_unsupported',
      `the system call filter supports x86_64 and aarch64 only, this is ${process.arch}`,
    )
  }
  const bwrap = findBwrap(options.bwrap)
  const state = new StateDirectory(options.stateDir ?? defaultStateDir())
  const own = process.getuid?.() ?? 0
  const firstUid = own === 0 ? firstSandboxUid() : undefined
  // One uid of the range represents all: none of them owns a file on the host.
  const uid = firstUid ?? own
  state.prepare(uid)
  const slot = await state.slots.take()
  try {
    const uids = firstUid === undefined ? undefined : new UidPool(state.slots, slot, firstUid)
    requireDescriptors()
    const cgroups = findCgroups()
    const python = await findPython(options.python, uid)
    const [harness, countsProcesses] = await Promise.all([
      stageHarness(state.staging, slot, python),
      uids !== undefined || isHeldToProcessLimit(python.path),
    ])
    await touch(harness)
    const keptOrphans = await removeOrphans(state, cgroups).then(() => undefined, messageOf)
    return {
      state,
      slot,
      uids,
      bwrap,
      python,
      harness,
      directories: new DirectoryStage(state.staging, slot),
      cgroups,
      orphans: new OrphanRetry(),
      countsProcesses,
      keptOrphans,
    }
  } catch (error) {
    slot.release()
    throw shortageError(error, 'the local engine cannot probe this machine') ?? error
  }
}

/** Fails early if few descriptors are left: the environment is cached, so a part not found for lack of them would stay missing. */
function requireDescriptors(): void {
  const open: number[] = []
  try {
    while (open.length < DESCRIPTORS) open.push(openSync('/dev/null', 'r'))
  } finally {
    for (const fd of open) closeSync(fd)
  }
}

/** The limits in force in a sandbox whose control groups enforce `held`. */
export function limitsInForce({ countsProcesses }: EngineEnvironment, held: readonly EnforcedLimit[]): EnforcedLimit[] {
  const order: EnforcedLimit[] = ['memory', 'pids', 'cpu', 'disk', 'output', 'wall']
  const always = countsProcesses ? [...ALWAYS, 'pids'] : ALWAYS
  return order.filter((limit) => always.includes(limit) || held.includes(limit))
}

/** The other limits, each with its remedy. */
export function missingLimits(
  at: EngineEnvironment,
  held: readonly EnforcedLimit[],
): Partial<Record<EnforcedLimit, string>> {
  const inForce = limitsInForce(at, held)
  return Object.fromEntries(Object.entries(MISSING).filter(([limit]) => !inForce.includes(limit as EnforcedLimit)))
}
