import { SandglassError } from '../../errors/index.ts'
import type { EnforcedLimit } from '../../sandbox/index.ts'
import { type CgroupHost, findCgroups } from './cgroups.ts'
import { collectLeftovers } from './leftovers.ts'
import type { LocalEngineOptions } from './options.ts'
import { findBwrap, findPython, type FoundPython } from './programs.ts'
import { DirectoryStage, stageHarness, touch } from './staging.ts'
import { defaultStateDir, type Slot, StateDirectory } from './state.ts'
import { firstSandboxUid, UidPool } from './uids.ts'

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
}

/** Limits that hold with and without control groups: sized file systems, counted frames, clocks, and RLIMIT_NPROC. */
const ALWAYS: readonly EnforcedLimit[] = ['disk', 'output', 'wall', 'pids']

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
    const cgroups = findCgroups()
    const python = await findPython(options.python, uid)
    const harness = await stageHarness(state, slot, python)
    await touch(harness)
    await collectLeftovers(state, cgroups)
    return { state, slot, uids, bwrap, python, harness, directories: new DirectoryStage(state, slot), cgroups }
  } catch (error) {
    slot.release()
    throw error
  }
}

/** What a sandbox is really held to, when its control groups hold it to `held`. */
export function enforced(held: readonly EnforcedLimit[]): EnforcedLimit[] {
  const order: EnforcedLimit[] = ['memory', 'pids', 'cpu', 'disk', 'output', 'wall']
  return order.filter((limit) => ALWAYS.includes(limit) || held.includes(limit))
}
