import { ExecutionMode } from '../executor/index.ts'
import type { Lease } from '../pool/index.ts'
import type { Failure } from '../script/index.ts'
import { attempt } from './attempt.ts'
import type { Leftovers } from './leftovers.ts'
import { RunOver } from './run-over.ts'
import type { Session } from './session.ts'
import { Stagnation } from './stagnation.ts'

/** What a mode came to. */
export interface Answer {
  readonly data: unknown
}

/**
 * PLAN mode (requirement OR-02): one script for the whole task; a failure becomes feedback of the next attempt.
 * @throws RunOver
 */
export async function plan(session: Session, leftovers: Leftovers): Promise<Answer> {
  const { job } = session
  const stagnation = new Stagnation()
  const script = { mode: ExecutionMode.PLAN, tools: job.tools, inputs: job.inputs }
  const lease = async (): Promise<{ lease: Lease; giveBack: () => void }> => {
    const borrowed = await session.checkout()
    return { lease: borrowed, giveBack: () => void borrowed.release() }
  }
  let failure: Failure | undefined
  for (let number = 1; number <= job.maxRetries + 1; number += 1) {
    const prompt =
      failure === undefined ? job.generator.firstPrompt(job.task) : job.generator.retryPrompt(job.task, failure)
    const place = { step: null, attempt: number }
    const given = { place, prompt, script, stagnation, leftovers, lease, missing: () => undefined }
    const made = await attempt(session, given)
    if (made.kind === 'answered') return { data: made.data }
    if (made.kind === 'failed') failure = made.failure
  }
  throw new RunOver('retries-spent', failure?.error ?? 'no attempt was made')
}
