import { messageOf, SandglassError } from '../errors/index.ts'
import type { Sandbox } from '../sandbox/index.ts'
import { Countdown } from '../support/index.ts'
import { within } from './bounded.ts'

/** Time for the limit to be restored. */
const PUT_BACK_MS = 500

/**
 * Changes the CPU limit of a sandbox for one run: lowers it if the run asks for less, and lifts it while the run has to end.
 * The broker, which ends it, shares that limit with the script: behind dozens of busy processes it would wait for seconds.
 */
export class CpuBoost {
  readonly #sandbox: Sandbox
  #countdown: Countdown | undefined
  #lowered: AsyncDisposable | undefined
  #lifted: AsyncDisposable | undefined
  #stopped = false

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox
  }

  /** Lowers the limit until {@link putBack}. @throws SandglassError `limit_not_enforceable` */
  async lower(cpus: number | undefined): Promise<void> {
    if (cpus === undefined) return
    try {
      this.#lowered = await this.#sandbox.lowerCpuLimit?.(cpus)
    } catch (error) {
      throw new SandglassError('limit_not_enforceable', `limits.cpus: ${cpus} could not be set: ${messageOf(error)}`)
    }
  }

  /** Lifts the limit when no time is left, if the run is not over by then. */
  after(leftMs: () => number): void {
    if (this.#stopped || this.#sandbox.liftCpuLimit === undefined) return
    this.#countdown?.stop()
    this.#countdown = new Countdown(leftMs, () => this.now())
  }

  /** Lifts the limit now, if possible. Otherwise the run only ends later. */
  now(): void {
    this.#countdown?.stop()
    if (this.#stopped || this.#lifted !== undefined) return
    try {
      this.#lifted = this.#sandbox.liftCpuLimit?.()
    } catch {
      // the limit stays in force, and the host's backstop as well
    }
  }

  /** The run is over: no further lift, and a lifted limit stays lifted until {@link putBack}. */
  stop(): void {
    this.#countdown?.stop()
    this.#stopped = true
  }

  /** Restores the limit, for a sandbox that stays in use.
   * @returns the problem, or undefined. */
  async putBack(): Promise<string | undefined> {
    if (this.#lifted === undefined && this.#lowered === undefined) return undefined
    try {
      const done = this.#restore().then(() => true)
      if ((await within(done, PUT_BACK_MS)) === true) return undefined
      return `the CPU limit of the sandbox was not back after ${PUT_BACK_MS} ms`
    } catch (error) {
      return `the CPU limit of the sandbox could not be put back: ${messageOf(error)}`
    }
  }

  async #restore(): Promise<void> {
    await this.#lifted?.[Symbol.asyncDispose]()
    await this.#lowered?.[Symbol.asyncDispose]()
  }
}
