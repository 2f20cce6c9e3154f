import type { Channel, Sandbox } from '../sandbox/index.ts'
import type { PreparedRun } from './prepare.ts'

/** What was counted at the end of the last run of a sandbox: nothing runs in it between runs, and each look is a file read. */
const counted = new WeakMap<Channel, number | null>()

/** Tells whether a run that runs out of memory runs into its limit. */
export class MemoryWatch {
  readonly #sandbox: Sandbox
  readonly #killsBefore: number | null
  readonly #boundsAddressSpace: boolean
  #told = 0

  constructor({ sandbox, asksLessMemory }: PreparedRun) {
    this.#sandbox = sandbox
    this.#killsBefore = counted.get(sandbox.channel) ?? sandbox.memoryKills()
    this.#boundsAddressSpace =
      asksLessMemory || this.#killsBefore === null || !sandbox.info.limitsEnforced.includes('memory')
  }

  /** Takes what the harness counted, where it can see what the host cannot. */
  told(kills = 0): void {
    this.#told = kills
  }

  /** How many processes of the sandbox the kernel has killed for memory since. */
  get kills(): number {
    const now = this.#sandbox.memoryKills()
    counted.set(this.#sandbox.channel, now)
    return Math.max((now ?? 0) - (this.#killsBefore ?? 0), this.#told)
  }

  /**
   * Whether a `MemoryError` is the limit's doing. Where the kernel enforces it on the whole sandbox, allocations do not
   * fail and processes are killed; where the address space is limited instead, allocations fail. Else a script raised
   * it by itself, or asked for more than there is.
   */
  get explainsError(): boolean {
    return this.#boundsAddressSpace || this.kills > 0
  }
}
