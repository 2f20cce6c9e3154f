import { rejectionText } from '../checkers.ts'
import { messageOf } from '../errors/index.ts'
import { ExecutionMode, type ExecutionResult } from '../executor/index.ts'
import { statusFields } from '../outcomes/index.ts'
import type { AttemptStatus, Place, Repetition } from '../journal/index.ts'
import type { ScriptHost } from './job.ts'
import { type Findings, reviewScript } from '../review/index.ts'
import { type Failure, type FoundScript, MAX_ANSWER_CHARS, findPlan, findScript } from '../script/index.ts'
import { countText } from '../support/index.ts'
import { applySchema } from '../typed-result.ts'
import { describeVariables, describeWarnings, listShown, listWarnings, type NotedItem } from './cell-notes.ts'
import { EndTask } from './end-task.ts'
import { ModelCalls, type PricedAnswer } from './model-calls.ts'
import { PartialResult } from './partial-result.ts'
import { makeDecisionEvent, makeProposalEvent } from './review-events.ts'
import {
  type Borrowed,
  isToolIn,
  describeWithheldTool,
  type ScriptCheck,
  ScriptRuns,
  type ScriptSurroundings,
} from './script-runs.ts'
import { Stagnation } from './stagnation.ts'
import { roundMs, type ActiveTask } from './active-task.ts'

/** The outcome of one attempt. */
export type AttemptOutcome =
  | { readonly kind: 'answered'; readonly data: unknown }
  | {
      readonly kind: 'stepped'
      readonly script: string
      readonly emitted: ExecutionResult['intermediates']
      /** Told to the model about the run; no data of the script. */
      readonly notes: readonly NotedItem[]
    }
  | {
      readonly kind: 'failed'
      readonly failure: Failure
      /** The data that the script emitted before it failed. */
      readonly emitted: ExecutionResult['intermediates']
      readonly repetition: Repetition | null
    }

/** The settings of an attempt. */
export interface AttemptPlan {
  readonly place: Place
  readonly prompt: string
  readonly surroundings: ScriptSurroundings
  /** Releases a sandbox that is held between scripts, because a reviewer may take hours. */
  releaseSandbox(): Promise<void>
  /** Leases the sandbox; called only for a script that passed the check. */
  lease(host: ScriptHost): Promise<Borrowed>
  /** The reason that the output of a step is not enough, or undefined. */
  findMissing(result: ExecutionResult): string | undefined
}

/** The findings about a script, and the host that would run it. */
interface ReviewFindings extends Findings {
  readonly host: ScriptHost
}

interface Round {
  readonly status: AttemptStatus
  readonly outcome: AttemptOutcome
}

/** Makes the attempts of one task: prompt, answer, script, check, run. */
export class Attempts {
  readonly task: ActiveTask
  readonly scripts: ScriptRuns
  readonly partial: PartialResult = new PartialResult()
  readonly stagnation: Stagnation = new Stagnation()
  readonly #models: ModelCalls
  /** The last script that the model proposed to the reviewer. */
  #lastProposed: string | null = null

  constructor(task: ActiveTask) {
    this.task = task
    this.scripts = new ScriptRuns(task)
    this.#models = new ModelCalls(task)
  }

  /**
   * Makes one attempt and records how it ended. A mistake of the model is returned, not thrown.
   * @throws EndTask when the task cannot continue.
   */
  async make(plan: AttemptPlan): Promise<AttemptOutcome> {
    await this.task.assertCanContinue(plan.surroundings.tools !== undefined)
    const started = performance.now()
    const end = (status: AttemptStatus, error: string | null, repetition: Repetition | null): void => {
      const ms = roundMs(performance.now() - started)
      this.task.journal.write({ type: 'attempt_ended', ...plan.place, status, error, repetition, duration_ms: ms })
    }
    try {
      const { status, outcome } = await this.#generateAndRun(plan)
      if (outcome.kind === 'failed') end(status, outcome.failure.error, outcome.repetition)
      else end(status, null, null)
      return outcome
    } catch (error) {
      if (error instanceof EndTask) end(statusAtEnd(error), error.message, null)
      throw error
    }
  }

  async #generateAndRun(plan: AttemptPlan): Promise<Round> {
    const { place, prompt, surroundings } = plan
    const answer = await this.#models.ask(place, prompt)
    const found = findScript(answer.text)
    if ('problem' in found) {
      this.#models.record(place, answer, null)
      return this.#fail('no-script', { script: null, error: PROBLEMS[found.problem] })
    }
    const host = await this.task.orEnd(this.scripts.findHost(found))
    const refusal = 'line' in host ? host : undefined
    const check = await this.#check(place, answer, found, surroundings, 'line' in host ? this.task.job.host : host)
    const { script } = check
    const violations = refusal === undefined ? check.violations : [refusal]
    if (script === null) return this.#fail('no-script', { script, error: PROBLEMS['no-code'] })
    this.scripts.recordCheck(place, { ...check, violations })
    const preambleError = violations.find(({ code }) => code === 'preamble_error')
    // No script can fix the preamble.
    if (preambleError !== undefined) throw new EndTask('infrastructure', preambleError.message)
    if (violations.length > 0 || 'line' in host) {
      return this.#fail('rejected', { script, error: rejectionText(violations), violations })
    }
    const accepted = await this.#review(plan, answer.text, { script, host, findings: check.findings })
    if ('error' in accepted) return this.#fail('not-accepted', { script, error: accepted.error })
    // No script runs unless the journal stored everything before it.
    await this.task.assertStored()
    return this.#run(plan, accepted)
  }

  async #run(
    plan: AttemptPlan,
    { script, host }: { readonly script: string; readonly host: ScriptHost },
  ): Promise<Round> {
    const ran = await this.scripts.runWithRerun(plan.place, script, () => plan.lease(host), plan.surroundings)
    host.noteRun?.({ script, imported: this.scripts.imported }, ran)
    return this.#judge(ran, plan, script)
  }

  /**
   * Asks the reviewer of the task, if it has one, about a script that passed the check.
   * @throws EndTask when the reviewer fails.
   */
  async #review(
    plan: AttemptPlan,
    answer: string,
    { script, host, findings }: { script: string; host: ScriptHost; findings: Findings | undefined },
  ): Promise<{ readonly script: string; readonly host: ScriptHost } | { readonly error: string }> {
    const { job, journal, signal } = this.task
    const { review: reviewer } = job
    if (reviewer === undefined) return { script, host }
    if (findings === undefined)
      throw new EndTask('infrastructure', 'the check did not list the tools that the script may call')
    const { place, surroundings } = plan
    await plan.releaseSandbox()
    const last = this.#lastProposed
    this.#lastProposed = script
    const checkOwn = async (own: string): Promise<ReviewFindings | { readonly problem: string }> => {
      const found = await this.task.orEnd(this.scripts.findHost({ script: own }))
      if ('line' in found) return { problem: rejectionText([found]) }
      const { violations, findings: mine } = await this.scripts.check({ script: own }, surroundings, found)
      if (violations.length > 0 || mine === undefined) return { problem: rejectionText(violations) }
      return { ...mine, host: found }
    }
    try {
      const reviewed = await reviewScript<ReviewFindings>(
        { task: job.task, ...place, plan: findPlan(answer), script, findings: { ...findings, host } },
        {
          reviewer,
          last,
          signal,
          check: checkOwn,
          onProposal: async (proposal) => {
            journal.write(makeProposalEvent(place, proposal, this.task.redactor))
            await this.task.assertStored()
          },
          onDecision: (proposal, decision, waitedMs) =>
            journal.write(makeDecisionEvent(place, proposal, decision, waitedMs)),
        },
      )
      return reviewed.accepted ? { script: reviewed.script, host: reviewed.findings.host } : { error: reviewed.error }
    } catch (error) {
      if (error instanceof EndTask) throw error
      signal.throwIfAborted()
      throw new EndTask('infrastructure', `the review failed: ${messageOf(error)}`, { cause: error })
    }
  }

  /** Checks the script of an answer, and records the answer: only the check decides which text is its script. */
  async #check(
    place: Place,
    answer: PricedAnswer,
    found: FoundScript,
    at: ScriptSurroundings,
    host: ScriptHost,
  ): Promise<ScriptCheck> {
    let { script } = found
    try {
      const check = await this.scripts.check(found, at, host)
      script = check.script
      return check
    } finally {
      this.#models.record(place, answer, script)
    }
  }

  async #judge(ran: ExecutionResult, plan: AttemptPlan, script: string): Promise<Round> {
    const { job, files, displays } = this.task
    const isPlan = job.mode === ExecutionMode.PLAN
    this.partial.keepEmitted(ran.intermediates)
    // A workspace returns all files that match, including those of earlier scripts.
    const isAll = isPlan || job.host.keepsFiles === true
    if (isAll) files.replace(ran.files)
    if (isPlan) displays.replace(ran.displays)
    if (ran.hasResult) this.partial.keepResult(ran.finalData)
    if (ran.status === 'cancelled') this.task.signal.throwIfAborted()
    // No script can fix a secret, a Python tool or a preamble of the caller.
    if (ran.setupFailed) throw new EndTask('infrastructure', ran.error ?? ran.status)
    const result = await this.task.orEnd(this.#matchOutput(ran))
    if (result.success && !isAll) files.add(ran.files)
    if (result.success && !isPlan) displays.add(ran.displays)
    if (result.success) return { status: 'completed', outcome: { kind: 'answered', data: result.finalData } }
    const missing = result.status === 'step-done' ? plan.findMissing(result) : undefined
    if (result.status === 'step-done' && missing === undefined) {
      if (!isAll) files.add(ran.files)
      if (!isPlan) displays.add(ran.displays)
      const { cell } = this.scripts
      const emitted = cell === undefined ? result.intermediates : [...result.intermediates, ...listShown(result, cell)]
      return {
        status: 'step-done',
        outcome: { kind: 'stepped', script, emitted, notes: listWarnings(result.warnings) },
      }
    }
    const { traceback, stdout, stderr, toolCalls } = result
    const failedCalls = toolCalls.flatMap(({ name, error }) => (error === null ? [] : [{ name, ...error }]))
    const hint = result.error === null ? undefined : this.task.job.host.explain?.(result.error, script)
    const { cell } = this.scripts
    const variables = cell === undefined ? undefined : describeVariables(cell, result.warnings)
    const error =
      missing ?? [result.error ?? result.status, hint, variables].filter((text) => text !== undefined).join('\n')
    const status = missing === undefined ? result.status : 'no-data'
    const warnings = describeWarnings(result.warnings)
    const failed = { script, error, traceback, stdout, stderr, failedCalls, warnings }
    return this.#fail(
      status,
      { ...failed, ...explainWithheld(error, plan.surroundings, job.host) },
      result.intermediates,
    )
  }

  /** Applies `output`. Data of a wrong shape can make the schema's own code throw, which also counts as a mismatch. */
  async #matchOutput(ran: ExecutionResult): Promise<ExecutionResult> {
    try {
      return await applySchema(ran, this.task.job.output)
    } catch (error) {
      const message = `the result does not match \`output\`: ${messageOf(error)}`
      return { ...ran, ...statusFields('failed'), success: false, finalData: null, error: message }
    }
  }

  #fail(
    status: AttemptStatus,
    found: Pick<Failure, 'script' | 'error'> & Partial<Failure>,
    emitted: ExecutionResult['intermediates'] = [],
  ): Round {
    // A reviewer may give the same answer twice; that does not count as a repetition of the model.
    const repetition = status === 'not-accepted' ? null : this.stagnation.addFailure(found.script, found.error)
    const failure: Failure = {
      traceback: null,
      violations: [],
      stdout: '',
      stderr: '',
      failedCalls: [],
      warnings: [],
      writes: [...this.scripts.writes],
      uncertainWrites: [...this.scripts.uncertainWrites],
      repetition: repetition === null ? null : REPETITIONS[repetition],
      ...found,
    }
    // Redacted here, because a prompt may truncate the text, and redaction does not find a truncated secret.
    const safe = this.task.redactor.value(failure) as Failure
    return { status, outcome: { kind: 'failed', failure: safe, emitted, repetition } }
  }
}

/** Replaces the NameError of a withheld tool, for which Python suggests another name. */
function explainWithheld(error: string, { withheld }: ScriptSurroundings, host: ScriptHost): Partial<Failure> {
  const name = /^NameError: name '(\w+)' is not defined/.exec(error)?.[1]
  return isToolIn(withheld, name) ? { error: describeWithheldTool(name, host), traceback: null } : {}
}

function statusAtEnd({ status }: EndTask): AttemptStatus {
  return status === 'model-failed' || status === 'infrastructure' ? status : 'cancelled'
}

const PROBLEMS = {
  empty: 'the answer is empty: it holds no script',
  'no-code': 'the answer holds no Python code: write one whole script in a ```python block',
  'too-long': `the answer is longer than ${countText(MAX_ANSWER_CHARS)} characters, so it was not read: write a shorter script`,
} as const

const REPETITIONS: Readonly<Record<Repetition, string>> = {
  'same-result': 'This result is the same as that of the previous step: it adds nothing new.',
  'same-script': 'This script is the same as the previous one and fails in the same way. Write a different script.',
  'same-error': 'This error is the same as the previous one: the last change did not fix it. Try another approach.',
  cycle: 'You alternate between two mistakes: fixing one brings back the other. Fix both at once.',
}
