import { SandglassError } from '../../errors/index.ts'
import type { GuestProcess, ProcessEnd } from './guest-interface.ts'
import type { Reserve, ReserveMember } from './reserve.ts'
import { makeSpare, type Spare, type StartGuest } from './spare.ts'

/** A run has waited for an instance that it takes within this time after it was ready. */
const AWAITED_MS = 100
/** A sandbox that always had one more instance for this time keeps one. */
export const QUIET_MS = 30_000
/** The memory of an instance that does not say how much it takes. */
const ASSUMED_BYTES = 162 * 1024 * 1024

/** The parts and callbacks of {@link Instances}. */
export interface InstancesOptions {
  readonly start: StartGuest
  readonly startTimeoutMs: number
  /** Allows more than one instance to wait. Absent: at most one. */
  readonly reserve?: Reserve
  /** Called when an instance waits for a script. */
  readonly onReady: () => void
  /** Called if an instance other than the first could not be made. For the first, {@link Instances.prepare} rejects. */
  readonly onFailed: (error: unknown) => void
  /** Called if an instance ended while it waited. */
  readonly onLost: (lastOutput: string) => void
}

/**
 * The instances of one sandbox: those that wait for a script, and the one that is being made; the used ones end. One waits, and one
 * more each time that a run had to wait, as far as the reserve allows. If all were not used for a time, one is left.
 */
export class Instances implements ReserveMember {
  readonly #options: InstancesOptions
  /** Modules that end an instance when they are loaded. */
  readonly #fatal: string[] = []
  /** The first one gets the next script. */
  readonly #spares: Spare[] = []
  /** When the instance became ready that was made last, by `performance.now()`. */
  #readyAt = 0
  #making: Promise<Spare | undefined> | undefined
  #starting: GuestProcess | undefined
  #made = 0
  /** The memory of the instance that was made last. */
  #instanceBytes = 0
  #taken = 0
  #wanted = 1
  #quiet: NodeJS.Timeout | undefined
  #isOver = false
  /** Instances that were killed and have not ended. */
  readonly #dying = new Set<Promise<unknown>>()
  /** Resolves when the next instance is ready. */
  #next = Promise.withResolvers<void>()

  constructor(options: InstancesOptions) {
    this.#options = options
    options.reserve?.join(this)
  }

  /** The instance that gets the next script. */
  get spare(): Spare | undefined {
    return this.#spares[0]
  }

  get waiting(): number {
    return this.#spares.length
  }

  get wantsMore(): boolean {
    return this.#making === undefined && !this.#isOver && this.waiting < this.#wanted
  }

  get instanceBytes(): number {
    return this.#instanceBytes
  }

  /** The memory of those that wait or are being made, in bytes. */
  get bytes(): number {
    return this.#count * this.#instanceBytes
  }

  get extraBytes(): number {
    return Math.max(0, this.#count - 1) * this.#instanceBytes
  }

  get #count(): number {
    return this.waiting + (this.#making === undefined ? 0 : 1)
  }

  /** Resolves when an instance waits, or when all have ended. */
  awaitSpare(): Promise<void> {
    return this.spare !== undefined && !this.#isOver ? Promise.resolve() : this.#next.promise
  }

  /** Hands out the instance that waits. */
  take(): Spare | undefined {
    const spare = this.#spares.shift()
    if (spare === undefined || this.#options.reserve === undefined) return spare
    // The first script of a sandbox waits for the sandbox.
    const wasAwaited = this.#taken > 0 && this.waiting === 0 && performance.now() - this.#readyAt < AWAITED_MS
    if (wasAwaited) this.#wanted = Math.min(this.#wanted, this.#options.reserve.maxExtras(this)) + 1
    this.#taken += 1
    if (this.waiting === 0) {
      clearTimeout(this.#quiet)
      this.#quiet = setTimeout(() => this.#shrink(), QUIET_MS).unref()
    }
    return spare
  }

  /** Takes back an instance that ran nothing. Ends another one if there are now too many. */
  putBack(spare: Spare): void {
    this.#spares.unshift(spare)
    this.#announce()
    this.#endSurplus()
    const last = this.waiting > 1 && this.#options.reserve?.isExceeded === true ? this.#spares.pop() : undefined
    if (last !== undefined) this.#destroy(last)
  }

  /**
   * Makes an instance unless one waits or is being made; if one waits, the reserve may make another. Resolves with undefined if the
   * sandbox has ended or `onFailed` was called.
   */
  prepare(): Promise<Spare | undefined> {
    if (this.spare === undefined && !this.#isOver) return (this.#making ??= this.#make())
    this.#options.reserve?.fill()
    return Promise.resolve(this.spare)
  }

  async makeExtra(): Promise<void> {
    await (this.#making ??= this.#make())
  }

  /** Resolves when an instance that was killed has ended. {@link Instances.end} waits for it. */
  endOf(guest: GuestProcess): Promise<ProcessEnd> {
    const gone = guest.ended.finally(() => this.#dying.delete(gone))
    this.#dying.add(gone)
    return gone
  }

  /** Kills all instances, including those that run something; resolves when they have ended. */
  async end(running: readonly (GuestProcess | undefined)[]): Promise<void> {
    this.#isOver = true
    clearTimeout(this.#quiet)
    this.#options.reserve?.leave(this)
    const waiting = this.#spares.map(({ guest }) => guest)
    const guests = [...waiting, this.#starting, ...running].filter((guest) => guest !== undefined)
    for (const guest of guests) guest.destroy()
    await Promise.all([...guests.map((guest) => guest.ended), ...this.#dying])
  }

  /** Resolves the promises of callers that wait for another instance. */
  giveUp(): void {
    this.#next.resolve()
  }

  async #make(): Promise<Spare | undefined> {
    try {
      const spare = await makeSpare((fatal) => this.#start(fatal), this.#fatal, this.#options.startTimeoutMs)
      this.#starting = undefined
      this.#made += 1
      const { memory_bytes: bytes } = spare.checks
      // It comes from a process that has loaded the packages of others.
      this.#instanceBytes = Number.isSafeInteger(bytes) && Number(bytes) > 0 ? Number(bytes) : ASSUMED_BYTES
      const isTooMany = this.waiting >= this.#wanted || (this.waiting > 0 && this.#options.reserve?.isExceeded === true)
      if (this.#isOver || isTooMany) {
        this.#destroy(spare)
        return undefined
      }
      this.#readyAt = performance.now()
      this.#spares.push(spare)
      this.#announce()
      void spare.guest.ended.then(() => this.#noteEnd(spare))
      this.#options.onReady()
      return spare
    } catch (error) {
      if (this.#made === 0) throw error
      // One that no run waits for can be missing.
      if (this.waiting > 0) this.#wanted = 1
      else this.#options.onFailed(error)
      return undefined
    } finally {
      this.#making = undefined // before callers that wait for it continue
      this.#options.reserve?.fill()
    }
  }

  #start(fatal: readonly string[]): GuestProcess {
    if (this.#isOver) throw new SandglassError('aborted', 'the sandbox was ended while an instance was made')
    this.#starting = this.#options.start(fatal) // so that end() ends it, too
    return this.#starting
  }

  /** Resolves the promises of callers that wait for an instance. */
  #announce(): void {
    this.#next.resolve()
    this.#next = Promise.withResolvers()
  }

  #shrink(): void {
    this.#wanted = 1
    this.#endSurplus()
  }

  #endSurplus(): void {
    for (const spare of this.#spares.splice(this.#wanted)) this.#destroy(spare)
  }

  #destroy({ guest }: Spare): void {
    guest.destroy()
    void this.endOf(guest)
  }

  /** Reports that the next instance ended while it waited: no script ended it. Another one can be missing. */
  #noteEnd(spare: Spare): void {
    const at = this.#spares.indexOf(spare)
    if (at === -1 || this.#isOver) return
    this.#spares.splice(at, 1)
    if (at > 0) this.#wanted = 1
    else this.#options.onLost(spare.guest.lastOutput())
  }
}
