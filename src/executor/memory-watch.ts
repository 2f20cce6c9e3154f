import type { Channel, Sandbox } from '../sandbox/index.ts'
import type { PreparedRun } from './prepare.ts'

/** The number of OOM kills at the end of a sandbox's last run. It is cached: each count reads a file, and nothing runs between runs. */
const counted = new WeakMap<Channel, number | null>()

/** Tells whether the memory limit explains that a run is out of memory. */
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

  /** Notes the count of the harness, which may include kills that the host cannot see. */
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
   * True if the limit explains a `MemoryError`. If the kernel enforces the limit on the whole sandbox, allocations do not
   * fail and processes are killed; if the address space is limited instead, allocations fail. Otherwise the
   * script raised the error, or requested more memory than the machine has.
   */
  get explainsError(): boolean {
    return this.#boundsAddressSpace || this.kills > 0
  }
}
