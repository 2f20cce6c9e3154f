import { readdirSync, readFileSync } from 'node:fs'
import { SandglassError } from '../../errors/index.ts'
import type { Slot, StateDirectory } from './state.ts'

const UIDS_PER_SLOT = 64
/** Far above system users, subordinate ids and systemd's ranges. */
const PREFERRED_BASE = 2_000_000_000
/** What is left in a container that maps only 65,536 ids. */
const NARROW_BASE = 30_000

/** Gives each sandbox of this process a uid that no other living sandbox of this machine has. */
export class UidPool {
  readonly #state: StateDirectory
  readonly #base: number
  readonly #free: number[] = []
  readonly #slots = new Map<number, Slot>()

  /** @param first the slot that this process already holds. */
  constructor(state: StateDirectory, first: Slot) {
    this.#state = state
    this.#base = isMapped(PREFERRED_BASE) ? PREFERRED_BASE : NARROW_BASE
    this.#add(first)
  }

  /** A uid and the slot whose lock protects it. */
  async take(): Promise<{ uid: number; slot: Slot }> {
    for (;;) {
      const busy = uidsInUse()
      const index = this.#free.findIndex((uid) => !busy.has(uid))
      if (index !== -1) {
        const uid = this.#free.splice(index, 1)[0] as number
        return { uid, slot: this.#slots.get(Math.floor((uid - this.#base) / UIDS_PER_SLOT)) as Slot }
      }
      if (this.#slots.size >= 16)
        throw new SandglassError('no_uid_left', 'this process uses 1,024 uids for sandboxes already')
      this.#add(await this.#state.takeSlot())
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
    this.#slots.set(slot.number, slot)
    for (let n = 0; n < UIDS_PER_SLOT; n += 1) this.#free.push(this.#base + slot.number * UIDS_PER_SLOT + n)
  }
}

/** Real uids of all living processes: an earlier owner's sandbox may still be dying. */
function uidsInUse(): Set<number> {
  const uids = new Set<number>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const status = readFileSync(`/proc/${name}/status`, 'utf8')
      if (/^State:\s*Z/m.test(status)) continue
      const uid = /^Uid:\s*(\d+)/m.exec(status)?.[1]
      if (uid !== undefined) uids.add(Number(uid))
    } catch {
      // it ended meanwhile
    }
  }
  return uids
}

function isMapped(uid: number): boolean {
  try {
    return readFileSync('/proc/self/uid_map', 'utf8')
      .trim()
      .split('\n')
      .some((line) => {
        const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number)
        return uid >= first && uid + 65_536 <= first + count
      })
  } catch {
    return false
  }
}
