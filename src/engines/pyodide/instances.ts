import { SandglassError } from '../../errors/index.ts'
import type { GuestProcess, ProcessEnd } from './guest-interface.ts'
import { makeSpare, type Spare, type StartGuest } from './spare.ts'

/** The parts and callbacks of {@link Instances}. */
export interface InstancesOptions {
  readonly start: StartGuest
  readonly startTimeoutMs: number
  /** Called when an instance waits for a script. */
  readonly onReady: () => void
  /** Called if an instance other than the first could not be made. For the first, {@link Instances.prepare} rejects. */
  readonly onFailed: (error: unknown) => void
  /** Called if an instance ended while it waited. */
  readonly onLost: (lastOutput: string) => void
}

/** The instances of one sandbox. At most one waits for its script; the next one is prepared, and the used ones end. */
export class Instances {
  readonly #options: InstancesOptions
  /** Modules that end an instance when they are loaded. */
  readonly #fatal: string[] = []
  #spare: Spare | undefined
  #making: Promise<Spare | undefined> | undefined
  #starting: GuestProcess | undefined
  #made = 0
  #isOver = false
  /** Instances that were killed and have not ended. */
  readonly #dying = new Set<Promise<unknown>>()
  /** Resolves when the next instance is ready. */
  #next = Promise.withResolvers<void>()

  constructor(options: InstancesOptions) {
    this.#options = options
  }

  /** The instance that waits for a script. */
  get spare(): Spare | undefined {
    return this.#spare
  }

  /** Resolves when an instance waits, or when all have ended. */
  awaitSpare(): Promise<void> {
    return this.#spare !== undefined && !this.#isOver ? Promise.resolve() : this.#next.promise
  }

  /** Hands out the instance that waits. */
  take(): Spare | undefined {
    const spare = this.#spare
    this.#spare = undefined
    return spare
  }

  /** Takes back an instance that ran nothing. Ends another one that was prepared in the meantime. */
  putBack(spare: Spare): void {
    const other = this.#spare
    this.#keep(spare)
    if (other === undefined) return
    other.guest.destroy()
    void this.endOf(other.guest)
  }

  /**
   * Makes an instance unless one waits or is being made. Resolves with undefined if the sandbox has ended or `onFailed` was
   * called.
   */
  prepare(): Promise<Spare | undefined> {
    if (this.#spare !== undefined || this.#isOver) return Promise.resolve(this.#spare)
    return (this.#making ??= this.#make())
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
    const guests = [this.#spare?.guest, this.#starting, ...running].filter((guest) => guest !== undefined)
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
      if (this.#isOver || this.#spare !== undefined) {
        spare.guest.destroy()
        void this.endOf(spare.guest)
        return undefined
      }
      this.#keep(spare)
      void spare.guest.ended.then(() => this.#noteEnd(spare))
      this.#options.onReady()
      return spare
    } catch (error) {
      if (this.#made === 0) throw error
      this.#options.onFailed(error)
      return undefined
    } finally {
      this.#making = undefined // before callers that wait for it continue
    }
  }

  #start(fatal: readonly string[]): GuestProcess {
    if (this.#isOver) throw new SandglassError('aborted', 'the sandbox was ended while an instance was made')
    this.#starting = this.#options.start(fatal) // so that end() ends it, too
    return this.#starting
  }

  #keep(spare: Spare): void {
    this.#spare = spare
    this.#next.resolve()
    this.#next = Promise.withResolvers()
  }

  /** Reports an instance that ended while it waited: no script ended it. */
  #noteEnd(spare: Spare): void {
    if (this.#spare === spare && !this.#isOver) this.#options.onLost(spare.guest.lastOutput())
  }
}
