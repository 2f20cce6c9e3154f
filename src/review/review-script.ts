import { checkDecision, type Decision, type Reviewer } from './decision.ts'
import { type Findings, makeProposal, type Proposal } from './proposal.ts'

/** A script to review. */
export interface Candidate<F extends Findings> extends Pick<Proposal, 'task' | 'attempt' | 'step' | 'plan' | 'script'> {
  readonly findings: F
}

/** The surroundings of a review. */
export interface ReviewContext<F extends Findings> {
  readonly reviewer: Reviewer
  /** The script that the model proposed last, or null. */
  readonly last: string | null
  readonly signal: AbortSignal
  /** Checks a replacement script from the reviewer. Returns its findings, or its mistakes. */
  check(script: string): Promise<F | { readonly problem: string }>
  /** Called before each question. */
  onProposal?(proposal: Proposal): void | Promise<void>
  /** Called after each answer. */
  onDecision?(proposal: Proposal, decision: Decision, waitedMs: number): void
}

/** The outcome of a review. */
export type Reviewed<F extends Findings> =
  | { readonly accepted: true; readonly script: string; readonly findings: F }
  /** `error` is for the model. */
  | { readonly accepted: false; readonly error: string }

/** Maximum number of times that the reviewer is asked again because the script in the answer has mistakes. */
const MAX_CORRECTIONS = 10

/**
 * Asks the reviewer, and asks again while the script in the answer has mistakes.
 * @throws TypeError for an answer that is not a decision, the error of the reviewer, the reason of the signal.
 */
export async function reviewScript<F extends Findings>(
  { findings: found, script, ...about }: Candidate<F>,
  context: ReviewContext<F>,
): Promise<Reviewed<F>> {
  let problem: string | null = null
  for (let correction = 0; correction <= MAX_CORRECTIONS; correction += 1) {
    const { dependencies, tools, sandbox } = found
    const proposal = await makeProposal({ ...about, script, dependencies, tools, sandbox, problem }, context.last)
    await context.onProposal?.(proposal)
    const started = performance.now()
    const decision = await ask(proposal, context)
    context.onDecision?.(proposal, decision, performance.now() - started)
    if (decision.decision !== 'accept')
      return { accepted: false, error: `the reviewer did not accept the script: ${decision.text}` }
    const own = decision.script ?? script
    if (own === script) return { accepted: true, script, findings: found }
    const checked = await context.check(own)
    if (!('problem' in checked)) return { accepted: true, script: own, findings: checked }
    problem = checked.problem
  }
  throw new TypeError(`${MAX_CORRECTIONS + 1} scripts of the reviewer had mistakes; the last one: ${problem}`)
}

/** Waits for the answer, at most until the signal fires. */
async function ask(proposal: Proposal, { reviewer, signal }: ReviewContext<Findings>): Promise<Decision> {
  signal.throwIfAborted()
  const end = Promise.withResolvers<never>()
  const onAbort = (): void => end.reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    const answer = Promise.resolve(reviewer(proposal, { signal }))
    return checkDecision(await Promise.race([answer, end.promise]))
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
