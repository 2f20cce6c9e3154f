import { OUTCOMES } from './outcomes.ts'

const NO_ANSWER = 1
const BROKEN: number = OUTCOMES.sandboxLost.exitCode

/** The outcomes of a task of `solve`. */
export type TaskStatus =
  | 'completed'
  /** PLAN: the last attempt failed. INTERACTIVE: the last attempt of a step. */
  | 'retries-spent'
  /** INTERACTIVE: the last step produced no result. */
  | 'steps-spent'
  /** The task repeated itself, and the step that was to finish it failed. */
  | 'stagnated'
  | 'budget-spent'
  | 'model-failed'
  | 'infrastructure'
  | 'cancelled'
  /** The journal has no end: the process ended early, or the task is still going. */
  | 'unfinished'

/** The meaning of each status of a task, and the exit code of `solve`. docs/cli.md lists them in this order. */
export const TASK_OUTCOMES: Readonly<Record<TaskStatus, { readonly meaning: string; readonly exitCode: number }>> = {
  completed: { meaning: 'there is an answer', exitCode: OUTCOMES.completed.exitCode },
  'retries-spent': { meaning: 'the last attempt that was allowed failed', exitCode: NO_ANSWER },
  'steps-spent': { meaning: 'the last step that was allowed produced no result', exitCode: NO_ANSWER },
  stagnated: { meaning: 'the task repeated itself, and its last chance to answer failed', exitCode: NO_ANSWER },
  'budget-spent': { meaning: 'a budget of tokens, tool calls or time was spent', exitCode: NO_ANSWER },
  'model-failed': { meaning: 'the model threw, refused or did not answer within 120 s', exitCode: BROKEN },
  infrastructure: {
    meaning:
      'no sandbox, a journal that cannot be written, or a failure of the tools or packages that every script gets',
    exitCode: BROKEN,
  },
  cancelled: { meaning: 'the caller cancelled the task', exitCode: OUTCOMES.cancelled.exitCode },
  unfinished: {
    meaning:
      'the journal of the task has no end: its process ended first, or it still runs (in `runs` and `show` only)',
    exitCode: BROKEN,
  },
}
