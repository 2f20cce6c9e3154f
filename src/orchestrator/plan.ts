import { ExecutionMode } from '../executor/index.ts'
import type { Failure } from '../script/index.ts'
import type { Attempts } from './attempt.ts'
import { EndTask } from './end-task.ts'
import type { ScriptHost } from './job.ts'
import type { Borrowed } from './script-runs.ts'

/** The answer of a task. */
export interface Answer {
  readonly data: unknown
}

/**
 * PLAN mode: one script for the whole task; a failure becomes feedback for the next attempt.
 * @throws EndTask
 */
export async function solveInOneScript(attempts: Attempts): Promise<Answer> {
  const { job } = attempts.task
  const surroundings = { mode: ExecutionMode.PLAN, tools: job.tools, inputs: job.inputs }
  const lease = async (host: ScriptHost): Promise<Borrowed> => {
    const borrowed = await attempts.scripts.checkout(host)
    const giveBack = (): Promise<void> | undefined => {
      const released = borrowed.release()
      // A pooled sandbox is wiped in the background. A workspace is released before the model is asked again, so that others can use it.
      return host.keepsFiles === true ? released : undefined
    }
    return { lease: borrowed, giveBack }
  }
  let failure: Failure | undefined
  for (let number = 1; number <= job.maxRetries + 1; number += 1) {
    const prompt =
      failure === undefined ? job.generator.firstPrompt(job.task) : job.generator.retryPrompt(job.task, failure)
    const place = { step: null, attempt: number }
    const outcome = await attempts.make({
      place,
      prompt,
      surroundings,
      lease,
      releaseSandbox: async () => {},
      findMissing: () => undefined,
    })
    if (outcome.kind === 'answered') return { data: outcome.data }
    if (outcome.kind === 'failed') failure = outcome.failure
  }
  throw new EndTask('retries-spent', failure?.error ?? 'no attempt was made')
}
