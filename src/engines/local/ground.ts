import { closeSync, openSync } from 'node:fs'
import { messageOf, SandglassError, shortageError } from '../../errors/index.ts'
import type { EnforcedLimit } from '../../sandbox/index.ts'
import { type CgroupHost, findCgroups } from './cgroup-host.ts'
import { collectLeftovers } from './leftovers.ts'
import type { LocalEngineOptions } from './options.ts'
import { isHeldToProcessLimit } from './process-limit.ts'
import { findBwrap, findPython, type FoundPython } from './programs.ts'
import { DirectoryStage, stageHarness, touch } from './staging.ts'
import { defaultStateDir, type Slot, StateDirectory } from './state.ts'
import { firstSandboxUid, UidPool } from './uids.ts'
import { Unremoved } from './unremoved.ts'

/** What the engine found once, at its first use. */
export interface Ground {
  readonly state: StateDirectory
  readonly slot: Slot
  /** Present on a host that is root and has more than one id: each sandbox gets a uid of its own. */
  readonly uids: UidPool | undefined
  readonly bwrap: string
  readonly python: FoundPython
  readonly harness: string
  readonly directories: DirectoryStage
  readonly cgroups: CgroupHost
  readonly unremoved: Unremoved
  /** Whether RLIMIT_NPROC holds sandboxes, with and without a control group. */
  readonly countsProcesses: boolean
  /** Why what is left over of others could not be removed. */
  readonly uncollected: string | undefined
}

/** As many as a sandbox takes while it starts: six pipes, their other ends, and what Node needs. */
const DESCRIPTORS = 16
/** Limits that hold without control groups: sized file systems, counted frames, clocks. */
const ALWAYS: readonly EnforcedLimit[] = ['disk', 'output', 'wall']
const REMEDY = 'give the host a control group to write (docs/running-in-a-container.md), or leave the limit out: '
/** What to do about limits that are missing, and what holds in their place. */
const MISSING: Readonly<Partial<Record<EnforcedLimit, string>>> = {
  memory: `${REMEDY}each process alone is then held to the default by RLIMIT_AS`,
  pids: `${REMEDY}the number of processes is then not limited, because the kernel counts none of root`,
  cpu: `${REMEDY}CPU time is then not limited`,
}

/**
 * Finds and takes what every sandbox of this process needs.
 * @throws SandglassError with the code of what is missing.
 */
export async function prepare(options: LocalEngineOptions): Promise<Ground> {
  if (process.platform !== 'linux') {
    throw new SandglassError('platform_unsupported', `the local engine runs on Linux only, this is ${process.platform}`)
  }
  if (process.arch !== 'x64' && process.arch !== 'arm64') {
    throw new SandglassError(
      'architecture_unsupported',
      `the system call filter knows x86_64 and aarch64, this is ${process.arch}`,
    )
  }
  const bwrap = findBwrap(options.bwrap)
  const state = new StateDirectory(options.stateDir ?? defaultStateDir())
  const own = process.getuid?.() ?? 0
  const firstUid = own === 0 ? firstSandboxUid() : undefined
  // Any uid of the range stands for all: none owns anything on the host.
  const uid = firstUid ?? own
  state.prepare(uid)
  const slot = await state.takeSlot()
  try {
    const uids = firstUid === undefined ? undefined : new UidPool(state, slot, firstUid)
    requireDescriptors()
    const cgroups = findCgroups()
    const python = await findPython(options.python, uid)
    const [harness, countsProcesses] = await Promise.all([
      stageHarness(state, slot, python),
      uids !== undefined || isHeldToProcessLimit(python.path),
    ])
    await touch(harness)
    const uncollected = await collectLeftovers(state, cgroups).then(() => undefined, messageOf)
    return {
      state,
      slot,
      uids,
      bwrap,
      python,
      harness,
      directories: new DirectoryStage(state, slot),
      cgroups,
      unremoved: new Unremoved(),
      countsProcesses,
      uncollected,
    }
  } catch (error) {
    slot.release()
    throw shortageError(error, 'the local engine cannot look around') ?? error
  }
}

/** What is found here is kept: what a host does not see for want of descriptors would be missing for good. */
function requireDescriptors(): void {
  const open: number[] = []
  try {
    while (open.length < DESCRIPTORS) open.push(openSync('/dev/null', 'r'))
  } finally {
    for (const fd of open) closeSync(fd)
  }
}

/** What a sandbox is really held to, when its control groups hold it to `held`. */
export function enforced({ countsProcesses }: Ground, held: readonly EnforcedLimit[]): EnforcedLimit[] {
  const order: EnforcedLimit[] = ['memory', 'pids', 'cpu', 'disk', 'output', 'wall']
  const always = countsProcesses ? [...ALWAYS, 'pids'] : ALWAYS
  return order.filter((limit) => always.includes(limit) || held.includes(limit))
}

/** The other limits, with what to do about each. */
export function missing(at: Ground, held: readonly EnforcedLimit[]): Partial<Record<EnforcedLimit, string>> {
  const inForce = enforced(at, held)
  return Object.fromEntries(Object.entries(MISSING).filter(([limit]) => !inForce.includes(limit as EnforcedLimit)))
}
