import type { Channel, Sandbox } from '../sandbox/index.ts'
import type { PreparedRun } from './prepare.ts'

/** The count at the end of a sandbox's last run. Nothing runs between runs, and each count reads a file. */
const counted = new WeakMap<Channel, number | null>()

/** Tells whether a run that runs out of memory runs into its limit. */
export class MemoryWatch {
  readonly #sandbox: Sandbox
  readonly #killsBefore: number | null
  readonly #boundsAddressSpace: boolean
  #counted = 0

  constructor({ sandbox, asksLessMemory }: PreparedRun) {
    this.#sandbox = sandbox
    this.#killsBefore = counted.get(sandbox.channel) ?? sandbox.memoryKills()
    this.#boundsAddressSpace =
      asksLessMemory || this.#killsBefore === null || !sandbox.info.limitsEnforced.includes('memory')
  }

  /** Takes the count of the harness, which may see kills that the host cannot. */
  noteKills(kills = 0): void {
    this.#counted = kills
  }

  /** The number of processes of the sandbox that the kernel has killed for memory since the last run ended. */
  get kills(): number {
    const now = this.#sandbox.memoryKills()
    counted.set(this.#sandbox.channel, now)
    return Math.max((now ?? 0) - (this.#killsBefore ?? 0), this.#counted)
  }

  /**
   * True if the limit explains a `MemoryError`. Where the kernel enforces it on the whole sandbox, allocations do not
   * fail and processes are killed; where the address space is limited instead, allocations fail. Otherwise the
   * script raised it, or asked for more memory than the machine has.
   */
  get explainsError(): boolean {
    return this.#boundsAddressSpace || this.kills > 0
  }
}
