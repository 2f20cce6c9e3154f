import { checkAnswer, rejectionText } from './checkers.ts'
import { dependencyViolationOf } from './dependencies.ts'
import type { Violation } from './executor/index.ts'
import { cellOptionsOf, type RunOptions, type Session } from './options/index.ts'
import { statusFields } from './outcomes/index.ts'
import { type Findings, findingsOf, type Reviewer, reviewScript } from './review/index.ts'
import { modulesOf, pinnedOf, type ScriptRunner } from './script-runner.ts'
import { definedOf } from './support/index.ts'
import { prepareTools, type RanScript } from './tools/index.ts'

interface Mistakes {
  readonly problem: string
  readonly violations: readonly Violation[]
}

/** The scripts of one tool of an agent: checked, shown to a reviewer if there is one, and run. */
export class ReviewedRuns {
  readonly #runner: ScriptRunner
  readonly #reviewer: Reviewer | undefined
  readonly #session: Session | undefined
  /** The script that the model proposed last. */
  #last: string | null = null
  #calls = 0

  /** @param session runs the scripts as its cells, if given. */
  constructor(runner: ScriptRunner, reviewer: Reviewer | undefined, session?: Session) {
    this.#runner = runner
    this.#reviewer = reviewer
    this.#session = session
  }

  /**
   * Runs a script. The result is `rejected` for a script with mistakes, with packages that it may not use, or that the reviewer
   * does not accept.
   * @throws SandglassError when the infrastructure fails; the error of the reviewer; TypeError for an answer that is not a decision.
   */
  async run(script: string, options: RunOptions): Promise<RanScript> {
    const { declarer } = this.#runner.dependencies
    const { workspace } = options
    // A person may take longer to decide than an idle workspace stays open.
    using _call = workspace === undefined ? undefined : this.#runner.workspaces.use(workspace)
    try {
      const reviewed = await this.#review(script, options)
      if (typeof reviewed !== 'string') return reviewed
      if (this.#session !== undefined) return await this.#session.run(reviewed, cellOptionsOf(options))
      return await this.#runner.run(reviewed, options, declarer)
    } catch (error) {
      const violation = dependencyViolationOf(error, script)
      if (violation === undefined) throw error
      return rejectedResult(rejectionText([violation]), [violation])
    }
  }

  /** The script to run, or the result of one that does not run. */
  async #review(script: string, options: RunOptions): Promise<string | RanScript> {
    const reviewer = this.#reviewer
    if (reviewer === undefined) return script
    const attempt = (this.#calls += 1)
    const found = await this.#check(script, options)
    if ('problem' in found) return rejectedResult(found.problem, found.violations)
    const last = this.#last
    this.#last = script
    const reviewed = await reviewScript(
      { task: null, step: null, attempt, plan: '', script, findings: found },
      {
        reviewer,
        last,
        signal: options.signal ?? new AbortController().signal,
        check: (own) => this.#checkOwn(own, options),
      },
    )
    return reviewed.accepted ? reviewed.script : rejectedResult(reviewed.error, [])
  }

  /** Checks a replacement script from the reviewer. Refused packages are mistakes, too. */
  async #checkOwn(own: string, options: RunOptions): Promise<Findings | Mistakes> {
    try {
      return await this.#check(own, options)
    } catch (error) {
      const violation = dependencyViolationOf(error, own)
      if (violation === undefined) throw error
      return { problem: rejectionText([violation]), violations: [violation] }
    }
  }

  /** Checks a script. Returns its findings, or its mistakes. */
  async #check(script: string, options: RunOptions): Promise<Findings | Mistakes> {
    const { dependencies, untrustedDependencies: untrusted, workspace, policy = 'off', ...given } = options
    const runner = this.#runner
    const wanted = { dependencies, untrusted, script, ...definedOf(options, ['tools', 'signal']) }
    const environment =
      workspace === undefined ? await runner.environmentFor(wanted) : runner.workspaces.environmentOf(workspace)
    const checked = await checkAnswer(runner.checkers, script, policy, {
      ...given,
      environment: modulesOf(environment),
      declarer: runner.dependencies.declarer,
      keepsFiles: workspace !== undefined,
      listTools: true,
    })
    const { violations } = checked
    if (violations.length > 0) return { problem: rejectionText(violations), violations }
    const tools = given.tools === undefined ? undefined : prepareTools(given.tools)
    return findingsOf(checked, pinnedOf(runner, environment), tools)
  }
}

/** The result of a script that was cancelled before it ran. */
export function cancelledResult(): RanScript {
  return unstartedResult('cancelled', 'the run was cancelled before it started')
}

/** The result of a script that was refused. */
function rejectedResult(error: string, violations: readonly Violation[]): RanScript {
  return unstartedResult('rejected', error, violations)
}

function unstartedResult(
  outcome: 'cancelled' | 'rejected',
  error: string,
  violations: readonly Violation[] = [],
): RanScript {
  const empty = { stdout: '', stderr: '', logs: [], intermediates: [], warnings: [], files: [], displays: [] }
  return {
    ...statusFields(outcome),
    success: false,
    hasResult: false,
    finalData: null,
    error,
    traceback: null,
    ...empty,
    violations,
  }
}
