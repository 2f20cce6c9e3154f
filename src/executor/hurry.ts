import { messageOf } from '../errors/index.ts'
import type { Sandbox } from '../sandbox/index.ts'
import { within } from './bounded.ts'

/** How long a sandbox may take to have its limit again. */
const PUT_BACK_MS = 500

/**
 * Lifts the CPU limit of a sandbox while a run has to come to its end. What ends it shares that limit with the script,
 * and behind dozens of busy processes it would wait for its turn for seconds.
 */
export class Hurry {
  readonly #sandbox: Sandbox
  #timer: NodeJS.Timeout | undefined
  #lifted: AsyncDisposable | undefined
  #stopped = false

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox
  }

  /** Lifts it when the run is not over by then. */
  after(ms: number): void {
    if (this.#stopped || this.#sandbox.liftCpuLimit === undefined) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.now(), ms)
  }

  /** Lifts it at once, if that can be done: without it the run only ends later. */
  now(): void {
    clearTimeout(this.#timer)
    if (this.#stopped || this.#lifted !== undefined) return
    try {
      this.#lifted = this.#sandbox.liftCpuLimit?.()
    } catch {
      // the limit stays in force, and the host's backstop as well
    }
  }

  /** The run is over: nothing is lifted any more, and what was stays so until {@link putBack}. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#stopped = true
  }

  /** Puts the limit back, for a sandbox that serves on. Why that failed, or undefined. */
  async putBack(): Promise<string | undefined> {
    if (this.#lifted === undefined) return undefined
    try {
      const done = Promise.resolve(this.#lifted[Symbol.asyncDispose]()).then(() => true)
      if ((await within(done, PUT_BACK_MS)) === true) return undefined
      return `the CPU limit of the sandbox was not back after ${PUT_BACK_MS} ms`
    } catch (error) {
      return `the CPU limit of the sandbox could not be put back: ${messageOf(error)}`
    }
  }
}
