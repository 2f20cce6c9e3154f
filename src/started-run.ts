import type { ExecutionResult, RunEvent, SandboxRunRequest, ScriptExecutor } from './executor/index.ts'
import type { Lease } from './pool/index.ts'

/** A run whose options are checked and whose packages are installed. Call one of its methods, once. */
export interface StartedRun<T> {
  run(): Promise<ExecutionResult<T>>
  /** The same as events; the last one is the result. Leaving the loop cancels the run. */
  stream(): AsyncGenerator<RunEvent<T>, void, void>
}

/** A run in a leased sandbox. */
export class LeasedRun<T> implements StartedRun<T> {
  readonly #executor: ScriptExecutor
  readonly #request: SandboxRunRequest
  readonly #lease: Pick<Lease, 'release'>
  readonly #finish: (result: ExecutionResult) => Promise<ExecutionResult<T>>

  /** @param finish makes the caller's result. It is called without the lease, because it may have to wait for other runs. */
  constructor(
    executor: ScriptExecutor,
    request: SandboxRunRequest,
    lease: Pick<Lease, 'release'>,
    finish: (result: ExecutionResult) => Promise<ExecutionResult<T>>,
  ) {
    this.#executor = executor
    this.#request = request
    this.#lease = lease
    this.#finish = finish
  }

  async run(): Promise<ExecutionResult<T>> {
    let result: ExecutionResult
    try {
      result = await this.#executor.run(this.#request)
    } finally {
      // Not awaited: the executor has ended a sandbox that must not serve again.
      void this.#lease.release()
    }
    return this.#finish(result)
  }

  async *stream(): AsyncGenerator<RunEvent<T>, void, void> {
    let result: ExecutionResult | undefined
    try {
      for await (const event of this.#executor.stream(this.#request)) {
        if (event.type === 'result') result = event.result
        else yield event
      }
    } finally {
      void this.#lease.release() // as in run()
    }
    if (result !== undefined) yield resultEvent(await this.#finish(result))
  }
}

/** A run that has its result before it begins. */
export function settledRun<T>(result: ExecutionResult<T>): StartedRun<T> {
  return {
    run: () => Promise.resolve(result),
    async *stream() {
      yield resultEvent(result)
    },
  }
}

function resultEvent<T>(result: ExecutionResult<T>): RunEvent<T> {
  return { type: 'result', executionId: result.executionId, result }
}
