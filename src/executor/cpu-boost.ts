import { messageOf, SandglassError } from '../errors/index.ts'
import type { Sandbox } from '../sandbox/index.ts'
import { Countdown } from '../support/index.ts'
import { within } from './bounded.ts'

/** Time for the limit to be restored. */
const RESTORE_MS = 500

/**
 * Changes the CPU limit of a sandbox for one run: lowers it if the run requests less, and lifts it while the run is being ended.
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

  /** Lowers the limit until {@link restore}. @throws SandglassError `limit_not_enforceable` */
  async lower(cpus: number | undefined): Promise<void> {
    if (cpus === undefined) return
    try {
      this.#lowered = await this.#sandbox.lowerCpuLimit?.(cpus)
    } catch (error) {
      // A workspace explains this already; errors of an engine may have other codes.
      if (error instanceof SandglassError && error.code === 'limit_not_enforceable') throw error
      throw new SandglassError('limit_not_enforceable', `limits.cpus: ${cpus} could not be set: ${messageOf(error)}`)
    }
  }

  /** Lifts the limit when `leftMs` reaches 0, if the run is not over by then. */
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

  /** The run is over: no further lift, and a lifted limit stays lifted until {@link restore}. */
  stop(): void {
    this.#countdown?.stop()
    this.#stopped = true
  }

  /**
   * Restores the limit, for a sandbox that stays in use.
   * @returns the problem, or undefined.
   */
  async restore(): Promise<string | undefined> {
    if (this.#lifted === undefined && this.#lowered === undefined) return undefined
    try {
      const done = this.#restoreLimits().then(() => true)
      if ((await within(done, RESTORE_MS)) === true) return undefined
      return `the CPU limit of the sandbox was not restored within ${RESTORE_MS} ms`
    } catch (error) {
      return `the CPU limit of the sandbox could not be restored: ${messageOf(error)}`
    }
  }

  async #restoreLimits(): Promise<void> {
    await this.#lifted?.[Symbol.asyncDispose]()
    await this.#lowered?.[Symbol.asyncDispose]()
  }
}
