/**
 * What a model is told, as texts with placeholders (requirement OR-12): data, so that each can be replaced. A paragraph
 * whose placeholders all come to nothing is left out.
 */
export interface Prompts {
  /** The first attempt in PLAN mode. */
  readonly first: string
  /** Every further attempt in PLAN mode. */
  readonly retry: string
  /** A step in INTERACTIVE mode. */
  readonly step: string
  /** The same after a step that failed. */
  readonly stepRetry: string
  /** The last step when a run does not get on: only the answer is wanted. */
  readonly finish: string
}

/** Names that stand for something in each of {@link Prompts}. */
export const PLACEHOLDERS: readonly string[] = [
  'task',
  'instructions',
  'tools',
  'preamble',
  'inputs',
  'modules',
  'output',
  'state',
  'script',
  'feedback',
  'history',
  'step',
  'max_steps',
]

const RULES = `Rules:
- Write plain Python 3. The script runs once, in a sandbox without network, and nothing of an earlier script is there.
- Call the functions below directly, as they are described. Do not import or define them.
- emit_intermediate(label, data) reports something on the way, emit_log(message) says something to people.
- An object that a function returns is read by key, order["id"], or as order.id.
- Results are JSON: dict, list, str, int, float, bool or None.
- Do not catch exceptions only to hide them: an error that you see can be mended.`

const GIVEN = `{{modules}}

{{instructions}}

These functions are there:
\`\`\`python
{{tools}}
\`\`\`

This was run before the script, in the same globals:
\`\`\`python
{{preamble}}
\`\`\`

These variables are there:
{{inputs}}

{{state}}

{{output}}

Task:
{{task}}`

const PLAN_OPENING = 'You solve a task by writing one Python script.'
const ONE_RESULT = '- Call emit_result(data) exactly once, at the end, with the whole answer.'

const STEP_OPENING =
  'You solve a task step by step. In each step you write one short Python script, see what it emitted, and go on.'
const STEP_RULES = `- Hand what later steps need to emit_intermediate(label, data), under a label that says what it is: variables are gone after the step.
- As soon as the task can be answered, call emit_result(data) with the whole answer: that ends the work.`
const EARLIER_DATA = `Data of earlier steps, also in the variable collected, a list of {"step", "label", "data"}:
{{history}}`
const NO_REFETCH = 'Do NOT re-fetch data already shown above.'

const FAILED_BEFORE = `Your last script:
\`\`\`python
{{script}}
\`\`\`

What was wrong with it:
{{feedback}}`

const ANSWER_CORRECTED = 'Answer with the whole corrected script in one ```python block and nothing else.'
const ANSWER = 'Answer with the whole script in one ```python block and nothing else.'

/** The texts in use unless others are given. */
export const DEFAULT_PROMPTS: Prompts = {
  first: `${PLAN_OPENING}

${RULES}
${ONE_RESULT}

${GIVEN}

${ANSWER}`,

  retry: `${PLAN_OPENING} Your last script did not do it.

${RULES}
${ONE_RESULT}

${GIVEN}

${FAILED_BEFORE}

Mend exactly that. ${ANSWER_CORRECTED}`,

  step: `${STEP_OPENING}

${RULES}
${STEP_RULES}

${GIVEN}

${EARLIER_DATA}

${NO_REFETCH} This is step {{step}} of at most {{max_steps}}. ${ANSWER}`,

  stepRetry: `${STEP_OPENING} The last script of this step did not do.

${RULES}
${STEP_RULES}

${GIVEN}

${EARLIER_DATA}

${FAILED_BEFORE}

${NO_REFETCH} This is still step {{step}} of at most {{max_steps}}. ${ANSWER_CORRECTED}`,

  finish: `You have collected data for a task, and the last steps brought nothing new. Write one last Python script that outputs the answer from the data below. Call no function but emit_result: nothing else is there any more.

- The variable collected holds the data: a list of {"step", "label", "data"}.
- Call emit_result(data) exactly once, with the best answer that the data allows. Say in it what is missing.

{{modules}}

These variables are there, too:
{{inputs}}

{{output}}

Task:
{{task}}

Data, as collected holds it:
{{history}}

${FAILED_BEFORE}

${NO_REFETCH} ${ANSWER}`,
}
