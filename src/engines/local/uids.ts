import { readFileSync } from 'node:fs'
import { SandglassError, shortageError } from '../../errors/index.ts'
import { listProcessIds } from './sandbox-processes.ts'
import type { Slot, Slots } from './slots.ts'

const UIDS_PER_SLOT = 64
const MAX_SLOTS = 16
/** Above system users, subordinate ids and the ranges of systemd. */
const PREFERRED_BASE = 2_000_000_000
/** The base in a container that maps only 65,536 ids. */
const NARROW_BASE = 30_000
/** The number of uids of all slots. */
const RANGE = 512 * UIDS_PER_SLOT

/**
 * Returns the first uid for sandboxes if root has more than its own id, else undefined. Only tests replace `read`.
 */
export function firstSandboxUid(
  read: (path: string) => string = (path) => readFileSync(path, 'utf8'),
): number | undefined {
  return [PREFERRED_BASE, NARROW_BASE].find((base) =>
    // A sandbox uses the same id as its gid.
    ['/proc/self/uid_map', '/proc/self/gid_map'].every((path) => isMapped(base, path, read)),
  )
}

/** Returns the first of the uids that belong to a slot; null if all sandboxes have the uid of their host. */
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
   * @param base the result of {@link firstSandboxUid}.
   */
  constructor(slots: Slots, first: Slot, base: number) {
    this.#allSlots = slots
    this.#base = base
    this.#add(first)
  }

  /** Takes a free uid. Returns it with the slot whose lock protects it. */
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
          `this process already uses all ${MAX_SLOTS * UIDS_PER_SLOT} uids that it may take for sandboxes; ` +
            'close some sandboxes, or start another process',
        )
      }
      const slot = await this.#allSlots.take()
      try {
        this.#add(slot)
      } catch (error) {
        slot.release() // no uid of the slot may be used before all of them were checked
        throw error
      }
    }
  }

  release(uid: number): void {
    this.#free.push(uid)
  }

  /** Releases every slot. */
  close(): void {
    for (const slot of this.#slots.values()) slot.release()
    this.#slots.clear()
    this.#free.length = 0
  }

  #add(slot: Slot): void {
    for (const uid of readUidsInUse()) this.#dying.add(uid)
    this.#slots.set(slot.number, slot)
    for (let n = 0; n < UIDS_PER_SLOT; n += 1) this.#free.push(this.#base + slot.number * UIDS_PER_SLOT + n)
  }

  /** True if no process has the uid. An earlier owner of the slot may have sandboxes that are still ending. */
  #isUnused(uid: number): boolean {
    if (!this.#dying.has(uid)) return true
    if (readUidsInUse().has(uid)) return false
    this.#dying.delete(uid)
    return true
  }
}

/** Reads the real uids of all living processes. */
function readUidsInUse(): Set<number> {
  const uids = new Set<number>()
  for (const name of listProcessIds()) {
    if (!/^\d+$/.test(name)) continue
    try {
      const status = readFileSync(`/proc/${name}/status`, 'utf8')
      if (/^State:\s*Z/m.test(status)) continue
      const uid = /^Uid:\s*(\d+)/m.exec(status)?.[1]
      if (uid !== undefined) uids.add(Number(uid))
    } catch (error) {
      // The process has ended, unless the host lacks the resources to read it: its uid may then be in use.
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
