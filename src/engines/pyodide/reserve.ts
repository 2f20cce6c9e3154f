const DEFAULT_BYTES = 512 * 1024 * 1024

/** The instances of one sandbox, as the reserve sees them. */
export interface ReserveMember {
  /** The number of its instances that wait for a script. */
  readonly waiting: number
  /** True if it wants another one to wait, and makes none now. */
  readonly wantsMore: boolean
  /** The memory of one of its instances, in bytes. */
  readonly instanceBytes: number
  /** The memory of those beyond the first, in bytes, with the one that is being made. */
  readonly extraBytes: number
  /** Makes one more. Resolves when it waits, or could not be made. Never rejects. */
  makeExtra(): Promise<void>
}

/**
 * Decides which sandbox of an engine gets one more instance. Extra instances are made one at a time, and only while each sandbox has
 * its first one: they must not delay an instance that a run waits for. (A lower priority would stay with the script that runs
 * in the instance, because a process needs privileges to raise it again.)
 */
export class Reserve {
  readonly #maxBytes: number
  readonly #availableBytes: () => number
  readonly #members = new Set<ReserveMember>()
  #isMaking = false

  /**
   * @param maxBytes the memory that the extra instances may take together.
   * @param availableBytes the memory that is available; an extra instance may take a quarter of it.
   */
  constructor(maxBytes: number = DEFAULT_BYTES, availableBytes: () => number = () => process.availableMemory()) {
    this.#maxBytes = maxBytes
    this.#availableBytes = availableBytes
  }

  join(member: ReserveMember): void {
    this.#members.add(member)
  }

  leave(member: ReserveMember): void {
    this.#members.delete(member)
  }

  /** True if the extra instances take more than they may. */
  get isExceeded(): boolean {
    return this.#usedBytes > this.#maxBytes
  }

  /** The number of extra instances that there is room for, if no other sandbox had any. */
  maxExtras({ instanceBytes }: ReserveMember): number {
    return Math.floor(this.#maxBytes / instanceBytes)
  }

  get #usedBytes(): number {
    return [...this.#members].reduce((sum, { extraBytes }) => sum + extraBytes, 0)
  }

  /** Makes the next extra instance, if one is wanted and there is room for it. Then the next. */
  fill(): void {
    const next = this.#isMaking ? undefined : this.#next()
    if (next === undefined) return
    this.#isMaking = true
    void next.makeExtra().then(() => {
      this.#isMaking = false
      this.fill()
    })
  }

  /** The sandbox with the fewest instances of those that want one more. */
  #next(): ReserveMember | undefined {
    const members = [...this.#members]
    if (members.some(({ waiting }) => waiting === 0)) return undefined
    const [next] = members.filter(({ wantsMore }) => wantsMore).toSorted((a, b) => a.waiting - b.waiting)
    return next !== undefined && this.#hasRoomFor(next) ? next : undefined
  }

  #hasRoomFor({ instanceBytes }: ReserveMember): boolean {
    return this.#usedBytes + instanceBytes <= this.#maxBytes && instanceBytes <= this.#availableBytes() / 4
  }
}
