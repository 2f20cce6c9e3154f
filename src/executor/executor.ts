import { CallbackError } from './conversation.ts'
import { cancelledBeforeStart, execute } from './execute.ts'
import { Handoff } from './handoff.ts'
import { invalid } from './invalid.ts'
import { checkLimits, type RunLimits } from './limits.ts'
import { prepare, type SandboxRunRequest } from './prepare.ts'
import { ExecutionMode, type ExecutionResult, type RunEvent } from './result.ts'
import type { ResourceLimits } from '../sandbox/index.ts'
import { formatValue } from '../support/index.ts'

type EventOf<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>

/** Options of {@link ScriptExecutor}. */
export interface ScriptExecutorOptions {
  /** Timeout and output limit; memory, CPUs and pids only below those of the sandbox. Default: the limits of the sandbox. */
  readonly limits?: ResourceLimits
  /** PLAN (the default) needs a result; INTERACTIVE may end without one. */
  readonly mode?: ExecutionMode
  /**
   * Called and awaited for each intermediate, in order; the sandbox is not read meanwhile. One that throws fails the
   * run.
   */
  readonly onIntermediate?: (event: EventOf<'intermediate'>) => unknown
  /** Called and awaited for each log, as `onIntermediate` is. */
  readonly onLog?: (event: EventOf<'log'>) => unknown
  /** Called and awaited for each event except the final `result`, which the call returns; before the other two callbacks. */
  readonly onEvent?: (event: RunEvent) => unknown
  /** Called once with the modules that a run loaded, in sandboxes with packages. The script can make them up. */
  readonly onImports?: (modules: readonly string[]) => void
}

/**
 * Runs scripts in checked-out sandboxes, one at a time in each. It works on any channel, of any engine. A sandbox
 * that must not serve again is destroyed before the run settles, so that its pool sees it closed; any other is left as
 * it was.
 */
export class ScriptExecutor {
  readonly #limits: RunLimits
  readonly #mode: ExecutionMode
  readonly #options: ScriptExecutorOptions

  /** @throws SandglassError `invalid_request` for a limit out of range, TypeError for one that does not exist. */
  constructor(options: ScriptExecutorOptions = {}) {
    const { limits = {}, mode = ExecutionMode.PLAN } = options
    if (!Object.values(ExecutionMode).includes(mode))
      throw invalid('mode', `${formatValue(mode)} is not a mode; use plan or interactive`)
    this.#limits = checkLimits(limits)
    this.#mode = mode
    this.#options = options
  }

  /**
   * Runs one script. Whatever the script does is a result. The call settles when everything that the script started is dead, or with
   * the warning `destroy_failed`. The timeout begins when the sandbox has recovered from its last run (30 s at most) and the files have
   * been sent; tools that execute and calls that wait for approval move its end. After it, the host waits at most 5 s for the harness,
   * then at most 2 s for a sandbox whose channel closed to report its end, and 2 s for the destruction of one that must not serve again.
   * @throws SandglassError `invalid_request`, `limit_not_enforceable`, `sandbox_busy` before anything is sent; `invalid_request`
   * also for a file that cannot be read to its end, after which the sandbox is destroyed.
   */
  async run(request: SandboxRunRequest): Promise<ExecutionResult> {
    return this.#run(request)
  }

  /**
   * Runs one script and yields its events while it runs; the last is `result`. The sandbox is read only as fast
   * as the events are taken, while its timeout keeps running. Leaving the loop cancels the run and waits until it has
   * settled. Errors of {@link run} are thrown in place of the first event.
   */
  async *stream(request: SandboxRunRequest): AsyncGenerator<RunEvent, void, void> {
    const left = new AbortController()
    const handoff = new Handoff<RunEvent>()
    const listener = { left: left.signal, report: (event: RunEvent) => handoff.put(event) }
    const running = this.#run(request, listener).finally(() => handoff.end())
    // `running` is awaited below; until then a failure must not count as unhandled.
    running.catch(() => undefined)
    try {
      for (let event = await handoff.take(); event !== undefined; event = await handoff.take()) yield event
      const result = await running
      yield { type: 'result', executionId: result.executionId, result }
    } finally {
      handoff.abandon()
      left.abort()
      await running.catch(() => undefined)
    }
  }

  async #run(request: SandboxRunRequest, listener?: Listener): Promise<ExecutionResult> {
    const started = performance.now()
    const prepared = prepare(request, this.#mode, this.#limits)
    const signals = [prepared.signal, listener?.left].filter((signal) => signal !== undefined)
    const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0]
    const run = { ...prepared, signal, onImports: this.#options.onImports }
    if (signal?.aborted === true) return cancelledBeforeStart(run, started)
    return execute(run, started, async (event) => {
      await this.#callBack(event)
      await listener?.report(event)
    })
  }

  async #callBack(event: RunEvent): Promise<void> {
    const { onEvent, onIntermediate, onLog } = this.#options
    if (onEvent !== undefined) await attempt('onEvent', () => onEvent(event))
    if (event.type === 'intermediate' && onIntermediate !== undefined) {
      await attempt('onIntermediate', () => onIntermediate(event))
    }
    if (event.type === 'log' && onLog !== undefined) await attempt('onLog', () => onLog(event))
  }
}

/** The reader of a stream. */
interface Listener {
  /** Fires when the reader has left. */
  readonly left: AbortSignal
  readonly report: (event: RunEvent) => Promise<void>
}

async function attempt(name: string, callback: () => unknown): Promise<void> {
  try {
    await callback()
  } catch (error) {
    throw new CallbackError(name, error)
  }
}
