import { SandglassError } from '../../errors/index.ts'
import type { GuestProcess, ProcessEnd } from './guest-interface.ts'
import { makeSpare, type Spare, type StartGuest } from './spare.ts'

/** What the instances of a sandbox are made of, and who hears of them. */
export interface InstancesOptions {
  readonly start: StartGuest
  readonly startTimeoutMs: number
  /** There is one that waits for a script. */
  readonly onReady: () => void
  /** None could be made, but for the first: {@link Instances.prepare} rejects then. Called before another one is tried. */
  readonly onFailed: (error: unknown) => void
  /** One ended while it waited. */
  readonly onLost: (lastWords: string) => void
}

/** The instances of one sandbox: one at most waits for its script, the next is made, and those that are done end. */
export class Instances {
  readonly #options: InstancesOptions
  /** What is known to end an instance when it is loaded. */
  readonly #fatal: string[] = []
  #spare: Spare | undefined
  #making: Promise<Spare | undefined> | undefined
  #starting: GuestProcess | undefined
  #made = 0
  #isOver = false
  /** Killed, and not yet gone. */
  readonly #dying = new Set<Promise<unknown>>()
  /** Settles with the next one that is ready. */
  #next = Promise.withResolvers<void>()

  constructor(options: InstancesOptions) {
    this.#options = options
  }

  /** The one that waits. */
  get spare(): Spare | undefined {
    return this.#spare
  }

  /** Resolves when one waits, or when all are gone. */
  recovered(): Promise<void> {
    return this.#spare !== undefined && !this.#isOver ? Promise.resolve() : this.#next.promise
  }

  /** Hands out the one that waits: it is the script's now. */
  take(): Spare | undefined {
    const spare = this.#spare
    this.#spare = undefined
    return spare
  }

  /** Takes one back that ran nothing. Where another one was made meanwhile, that is not needed. */
  putBack(spare: Spare): void {
    const other = this.#spare
    this.#keep(spare)
    if (other === undefined) return
    other.guest.destroy()
    void this.endOf(other.guest)
  }

  /** Makes one unless there is one, or one is being made. Resolves with nothing when all is over, or with what `onFailed` was told. */
  prepare(): Promise<Spare | undefined> {
    if (this.#spare !== undefined || this.#isOver) return Promise.resolve(this.#spare)
    return (this.#making ??= this.#make())
  }

  /** The end of one that was killed, for which the end of all waits. */
  endOf(guest: GuestProcess): Promise<ProcessEnd> {
    const gone = guest.ended.finally(() => this.#dying.delete(gone))
    this.#dying.add(gone)
    return gone
  }

  /** Kills all, and one that runs a script; resolves when they are gone. */
  async end(running: GuestProcess | undefined): Promise<void> {
    this.#isOver = true
    const guests = [this.#spare?.guest, this.#starting, running].filter((guest) => guest !== undefined)
    for (const guest of guests) guest.destroy()
    await Promise.all([...guests.map((guest) => guest.ended), ...this.#dying])
  }

  /** Tells who waits for another one that there will be none. */
  giveUp(): void {
    this.#next.resolve()
  }

  async #make(): Promise<Spare | undefined> {
    try {
      const spare = await makeSpare((fatal) => this.#start(fatal), this.#fatal, this.#options.startTimeoutMs)
      this.#starting = undefined
      this.#made += 1
      if (this.#isOver || this.#spare !== undefined) {
        spare.guest.destroy()
        void this.endOf(spare.guest)
        return undefined
      }
      this.#keep(spare)
      void spare.guest.ended.then(() => this.#ended(spare))
      this.#options.onReady()
      return spare
    } catch (error) {
      if (this.#made === 0) throw error
      this.#options.onFailed(error)
      return undefined
    } finally {
      this.#making = undefined // before anybody who waited for it goes on
    }
  }

  #start(fatal: readonly string[]): GuestProcess {
    if (this.#isOver) throw new SandglassError('aborted', 'the sandbox was ended while an instance was made')
    this.#starting = this.#options.start(fatal) // so that an end meanwhile ends it too
    return this.#starting
  }

  #keep(spare: Spare): void {
    this.#spare = spare
    this.#next.resolve()
    this.#next = Promise.withResolvers()
  }

  /** One that ends while it waits is nobody's doing but the machine's. */
  #ended(spare: Spare): void {
    if (this.#spare === spare && !this.#isOver) this.#options.onLost(spare.guest.lastWords())
  }
}
