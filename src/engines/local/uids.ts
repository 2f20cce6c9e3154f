import { readFileSync } from 'node:fs'
import { SandglassError, shortageError } from '../../errors/index.ts'
import { processNumbers } from './sandbox-processes.ts'
import type { Slot, Slots } from './slots.ts'

const UIDS_PER_SLOT = 64
const MAX_SLOTS = 16
/** Far above system users, subordinate ids and systemd's ranges. */
const PREFERRED_BASE = 2_000_000_000
/** The base in a container that maps only 65,536 ids. */
const NARROW_BASE = 30_000
/** The number of uids of all slots. */
const RANGE = 512 * UIDS_PER_SLOT

/**
 * The first uid for sandboxes where root has more than its own id, else undefined. `read` is replaced by tests only.
 */
export function firstSandboxUid(
  read: (path: string) => string = (path) => readFileSync(path, 'utf8'),
): number | undefined {
  return [PREFERRED_BASE, NARROW_BASE].find((base) =>
    // A sandbox has the same number for its group.
    ['/proc/self/uid_map', '/proc/self/gid_map'].every((path) => isMapped(base, path, read)),
  )
}

/** The first of the uids that go with a slot, null where all sandboxes have the uid of their host. */
export function firstUidOf(slot: number): number | null {
  const base = process.getuid?.() === 0 ? firstSandboxUid() : undefined
  return base === undefined ? null : base + slot * UIDS_PER_SLOT
}

/** Gives each sandbox of this process a uid that no other living sandbox of this machine has. */
export class UidPool {
  readonly #allSlots: Slots
  readonly #base: number
  readonly #free: number[] = []
  readonly #slots = new Map<number, Slot>()
  readonly #dying = new Set<number>()

  /**
   * @param first the slot that this process already holds.
   * @param base what {@link firstSandboxUid} gave.
   */
  constructor(slots: Slots, first: Slot, base: number) {
    this.#allSlots = slots
    this.#base = base
    this.#add(first)
  }

  /** A uid and the slot whose lock protects it. */
  async take(): Promise<{ uid: number; slot: Slot }> {
    for (;;) {
      const index = this.#free.findIndex((uid) => this.#isUnused(uid))
      if (index !== -1) {
        const uid = this.#free.splice(index, 1)[0] as number
        return { uid, slot: this.#slots.get(Math.floor((uid - this.#base) / UIDS_PER_SLOT)) as Slot }
      }
      if (this.#slots.size >= MAX_SLOTS) {
        throw new SandglassError(
          'no_uid_left',
          `this process uses ${MAX_SLOTS * UIDS_PER_SLOT} uids for sandboxes already`,
        )
      }
      const slot = await this.#allSlots.take()
      try {
        this.#add(slot)
      } catch (error) {
        slot.release() // no uid of the slot may be used before all were checked
        throw error
      }
    }
  }

  giveBack(uid: number): void {
    this.#free.push(uid)
  }

  /** Releases every slot. */
  close(): void {
    for (const slot of this.#slots.values()) slot.release()
    this.#slots.clear()
    this.#free.length = 0
  }

  #add(slot: Slot): void {
    for (const uid of uidsInUse()) this.#dying.add(uid)
    this.#slots.set(slot.number, slot)
    for (let n = 0; n < UIDS_PER_SLOT; n += 1) this.#free.push(this.#base + slot.number * UIDS_PER_SLOT + n)
  }

  /** An earlier holder of the slot may have sandboxes that are still dying; later ones are this process's own. */
  #isUnused(uid: number): boolean {
    if (!this.#dying.has(uid)) return true
    if (uidsInUse().has(uid)) return false
    this.#dying.delete(uid)
    return true
  }
}

/** Real uids of all living processes. */
function uidsInUse(): Set<number> {
  const uids = new Set<number>()
  for (const name of processNumbers()) {
    if (!/^\d+$/.test(name)) continue
    try {
      const status = readFileSync(`/proc/${name}/status`, 'utf8')
      if (/^State:\s*Z/m.test(status)) continue
      const uid = /^Uid:\s*(\d+)/m.exec(status)?.[1]
      if (uid !== undefined) uids.add(Number(uid))
    } catch (error) {
      // It ended meanwhile, except if this process lacks the means to read it: its uid may then be in use.
      const shortage = shortageError(error, 'the uids in use cannot be read')
      if (shortage !== undefined) throw shortage
    }
  }
  return uids
}

function isMapped(id: number, path: string, read: (path: string) => string): boolean {
  try {
    return read(path)
      .trim()
      .split('\n')
      .some((line) => {
        const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number)
        return id >= first && id + RANGE <= first + count
      })
  } catch {
    return false
  }
}
