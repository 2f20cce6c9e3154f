import {
  type CellEnd,
  type ExecutionMode,
  type ExecutionResult,
  MAX_LISTED_CALLS,
  type RunEvent,
  ScriptExecutor,
  type Violation,
  wasCalled,
} from '../executor/index.ts'
import type { Place } from '../journal/index.ts'
import { type Findings, findingsOf } from '../review/index.ts'
import type { FoundScript } from '../script/index.ts'
import type { Loan, ScriptHost } from './job.ts'
import { definedOf } from '../support/index.ts'
import { bridgedTools, mayHaveActed, type ToolSet } from '../tools/index.ts'
import { ScriptNotes } from './script-notes.ts'
import { roundMs, type ActiveTask } from './active-task.ts'

/** The names that a script can use. */
export interface ScriptSurroundings {
  readonly mode: ExecutionMode
  readonly tools: ToolSet | undefined
  readonly inputs: Readonly<Record<string, unknown>>
  /** Tools of the task that this script cannot call. */
  readonly withheld?: ToolSet | undefined
}

/** The script of an answer, null if there is none, and the violations in it. */
export interface ScriptCheck {
  readonly script: string | null
  readonly violations: ExecutionResult['violations']
  readonly ms: number
  /** The findings for the reviewer; undefined if the task has no reviewer. */
  readonly findings: Findings | undefined
}

/** A sandbox for one script. */
export interface Borrowed {
  readonly lease: Loan
  /** Called when the script has ended. */
  readonly giveBack: () => Promise<void> | undefined
}

/** The scripts of one task: checks them, leases sandboxes, runs them, and records what they do. */
export class ScriptRuns {
  readonly #task: ActiveTask
  readonly #writes: { readonly name: string; readonly args: unknown }[] = []
  readonly #uncertainWrites: { readonly name: string; readonly args: unknown }[] = []
  /** The modules that the last script loaded. */
  imported: readonly string[] = []
  /** The end of the last script, if it was a cell of a session. */
  cell: CellEnd | undefined

  constructor(task: ActiveTask) {
    this.#task = task
  }

  /** Successful calls of tools with the effect `write`, over all scripts so far. */
  get writes(): readonly { readonly name: string; readonly args: unknown }[] {
    return this.#writes
  }

  /** Calls of tools with the effect `write` that failed or were not answered, and may have had an effect, over all scripts so far. */
  get uncertainWrites(): readonly { readonly name: string; readonly args: unknown }[] {
    return this.#uncertainWrites
  }

  /**
   * Returns the host with the packages that the script of an answer names, or the violation if it cannot have them.
   * @throws EndTask when packages or sandboxes fail.
   */
  async findHost({ script, whole }: FoundScript): Promise<ScriptHost | Violation> {
    const { job, signal } = this.#task
    const { host } = job
    if (host.forScript === undefined) return host
    return this.#task.runInfrastructure(async () => (await host.forScript?.(script ?? whole ?? '', signal)) ?? host)
  }

  /**
   * Checks the script of an answer without running it, and decides which text is the script.
   * @throws EndTask when the checker fails.
   */
  async check(
    { script, whole }: FoundScript,
    { mode, tools, inputs, withheld }: ScriptSurroundings,
    host: ScriptHost,
  ): Promise<ScriptCheck> {
    const { job, signal } = this.#task
    const { policy, allowModules, generator } = job
    const listTools = job.review !== undefined
    // Without a policy, the checker only decides which text is the script.
    if (policy === 'off' && whole === undefined && !listTools)
      return { script, violations: [], ms: 0, findings: undefined }
    const started = performance.now()
    const { files, collect } = job
    const asked = {
      policy,
      mode,
      tools,
      inputs,
      files,
      collect,
      allowModules,
      listTools,
      signal,
      keepsFiles: host.keepsFiles === true,
      ...(whole === undefined ? {} : { whole }),
    }
    const { script: text, ...wrapper } = generator.assemble(script ?? '')
    const checked = await this.#task.runInfrastructure(() => host.check(text, { ...wrapper, ...asked }))
    const { isWhole } = checked
    const violations = checked.violations.map((violation) => explainWithheld(violation, withheld, host))
    const ms = roundMs(performance.now() - started)
    const findings = listTools ? findingsOf(checked, host.dependencies ?? [], tools) : undefined
    if (isWhole && whole !== undefined) return { script: whole, violations, ms, findings }
    return { script, violations: script === null ? [] : violations, ms, findings }
  }

  /** Records a check, if the task has a policy. */
  recordCheck(place: Place, { violations, ms }: ScriptCheck): void {
    const { job, journal } = this.#task
    const { policy } = job
    if (policy === 'off') return
    journal.write({ type: 'script_checked', ...place, policy, ok: violations.length === 0, violations, ms })
  }

  /** Borrows a sandbox. @throws EndTask when there is none. */
  async checkout(host: ScriptHost): Promise<Loan> {
    const { signal } = this.#task
    return this.#task.runInfrastructure(() => host.checkout(signal))
  }

  /** Runs a script in a borrowed sandbox and records its events. @throws EndTask when the sandbox fails. */
  async run(place: Place, script: string, loan: Loan, surroundings: ScriptSurroundings): Promise<ExecutionResult> {
    const { job, journal, redactor, signal, spending } = this.#task
    const { sandbox } = loan
    journal.write({ type: 'sandbox_assigned', ...place, sandbox_id: sandbox.id, engine: sandbox.info.engine })
    const notes = new ScriptNotes(journal, place, redactor)
    const { mode, tools, inputs } = surroundings
    const onEvent = (event: RunEvent): void => {
      if (event.type === 'file') job.onFile?.(event)
      notes.take(event)
    }
    this.imported = []
    const onImports = (modules: readonly string[]): void => void (this.imported = modules)
    this.cell = undefined
    const onEnd = (end: CellEnd): void => {
      this.cell = end
      loan.cell?.onEnd(end)
    }
    const executor = new ScriptExecutor({ limits: job.limits, mode, onEvent, onImports })
    const callsLeft = spending.toolCallsLeft
    const result = await this.#task.runInfrastructure(async () =>
      executor.run({
        ...job.generator.assemble(script),
        ...definedOf(loan, ['executionId']),
        ...(loan.cell === undefined ? {} : { cell: { ...loan.cell, onEnd } }),
        ...definedOf(job, ['files', 'collectLimits']),
        collect: job.collect,
        sandbox,
        inputs,
        secrets: job.secrets,
        hide: job.hide,
        signal,
        ...(tools === undefined ? {} : { tools: this.#bridgeTools(tools, callsLeft, loan) }),
      }),
    )
    spending.toolCalls += Math.min(notes.calls, callsLeft)
    notes.end(result, loan.cell === undefined ? undefined : { number: loan.cell.number, state: this.#stateOfCell() })
    this.#keepWrites(result.toolCalls)
    return result
  }

  /** The tools of a script, limited to the calls that the budget still allows. */
  #bridgeTools(tools: ToolSet, callsLeft: number, loan: Loan): ReturnType<typeof bridgedTools> {
    const { job, journal } = this.#task
    const { maxCalls = Number.POSITIVE_INFINITY, ...limits } = job.toolLimits
    const max = Math.min(maxCalls, callsLeft)
    const park = (): (() => void) => loan.park?.() ?? (() => undefined)
    const approver = job.host.approverOf?.({
      task: job.task,
      runId: journal.runId,
      park,
      cancel: () => this.#task.cancel(),
    })
    return bridgedTools(tools, { ...limits, ...(Number.isFinite(max) ? { maxCalls: max } : {}) }, approver)
  }

  /**
   * Runs a script as {@link run} does, once more if its sandbox is lost before any `write` began.
   * @param lease borrows a working sandbox.
   */
  async runWithRerun(
    place: Place,
    script: string,
    lease: () => Promise<Borrowed>,
    surroundings: ScriptSurroundings,
  ): Promise<ExecutionResult> {
    const runOnce = async (): Promise<ExecutionResult> => {
      const { lease: held, giveBack } = await lease()
      try {
        return await this.run(place, script, held, surroundings)
      } finally {
        await giveBack()
      }
    }
    const first = await runOnce()
    const hasCalls = surroundings.tools === undefined || this.#task.spending.toolCallsLeft > 0
    if (first.status !== 'sandbox-lost' || mayHaveWritten(first) || !hasCalls) return first
    this.#task.journal.write({ type: 'script_rerun', ...place, reason: first.error ?? first.status })
    return runOnce()
  }

  /** The state after the cell: `kept` if the cell did not begin. */
  #stateOfCell(): CellEnd['state'] {
    return this.cell?.state ?? 'kept'
  }

  #keepWrites(calls: ExecutionResult['toolCalls']): void {
    for (const call of calls) {
      const { name, effect, args, ok } = call
      if (ok && effect === 'write') this.#writes.push({ name, args })
      if (mayHaveActed(call)) this.#uncertainWrites.push({ name, args })
    }
  }
}

/** True if a call of a `write` tool began, whatever its outcome, or if there were more calls than are listed. */
function mayHaveWritten({ toolCalls }: ExecutionResult): boolean {
  return toolCalls.length >= MAX_LISTED_CALLS || toolCalls.some((call) => call.effect === 'write' && wasCalled(call))
}

/** Replaces the hint for a withheld tool: the checker does not know it and would suggest another name. */
function explainWithheld(violation: Violation, withheld: ToolSet | undefined, host: ScriptHost): Violation {
  const name = violation.code === 'unknown_name' ? /^'(\w+)' is not defined$/.exec(violation.message)?.[1] : undefined
  return isToolIn(withheld, name) ? { ...violation, hint: describeWithheldTool(name, host) } : violation
}

/** True for the name of a tool in the set. */
export function isToolIn(tools: ToolSet | undefined, name: string | undefined): name is string {
  return name !== undefined && (tools?.tools.has(name) === true || tools?.pythonTools.has(name) === true)
}

/** The explanation of a tool that a script cannot call. */
export function describeWithheldTool(name: string, host: ScriptHost): string {
  const use =
    host.variables === undefined
      ? 'Use the data in the variable collected.'
      : 'Use the variable collected and the variables of the session.'
  return `There are no tools in the final step: ${name} cannot be called. ${use}`
}
