/**
 * The prompts of a model, as templates with placeholders; each can be replaced. A paragraph is left out if all its
 * placeholders are empty.
 */
export interface Prompts {
  /** The first attempt in PLAN mode. */
  readonly first: string
  /** Every further attempt in PLAN mode. */
  readonly retry: string
  /** A step in INTERACTIVE mode. */
  readonly step: string
  /** A step in INTERACTIVE mode, after its last script failed. */
  readonly stepRetry: string
  /** The last step of a task that makes no progress: only the answer is wanted. */
  readonly finish: string
}

/** The placeholders of {@link Prompts}. */
export const PLACEHOLDERS: readonly string[] = [
  'task',
  'instructions',
  'tools',
  'preamble',
  'inputs',
  'files',
  'modules',
  'output',
  'state',
  'script',
  'feedback',
  'history',
  'step',
  'max_steps',
  'warning',
  'variables',
]

const ALONE = 'Nothing of an earlier script remains.'
const RULES = `Rules:
- Write plain Python 3. The script runs once, in a sandbox without a network. ${ALONE}
- Call the functions below directly, as described. Do not import or define them.
- emit_intermediate(label, data) reports data on the way; emit_log(message) writes a message for people,
  display(value) shows them a figure or a table.
- Read an object that a function returns by key, order["id"], or as order.id.
- Data must be JSON: dict, list, str, int, float, bool or None.
- Do not hide exceptions: you can fix only an error that you see.`

/** The parts that differ between prompts follow this text, so that providers can cache the beginning. */
const GIVEN = `{{modules}}

{{instructions}}

Functions: a call that fails raises ToolError, whose code and text tell why.
\`\`\`python
{{tools}}
\`\`\`

This code runs before the script, in the same globals:
\`\`\`python
{{preamble}}
\`\`\`

Variables:
{{inputs}}

{{files}}

{{output}}

Task:
{{task}}`

const PLAN_OPENING = 'Solve the task by writing one Python script.'
const ONE_RESULT = '- Call emit_result(data) exactly once, at the end, with the whole answer.'

const STEP_OPENING =
  'Solve the task step by step. In each step you write one short Python script, read what it emits, and continue.'
const STEP_DATA =
  '- Variables are gone after the step. Pass what later steps need to emit_intermediate(label, data), with a label that describes it.'
const STEP_RULES = `${STEP_DATA}
- Call emit_result(data) with the whole answer as soon as you can answer the task. That ends the work.`
const NO_REFETCH = 'Do NOT re-fetch data already shown above.'
const EARLIER_DATA = `Data of earlier steps. The variable collected holds it as a list of {"step", "label", "data"}:
{{history}}
${NO_REFETCH}`

const DATA_BELOW = 'the data below'
const COLLECTED = 'Data in collected:'

const FAILED_BEFORE = `Your last script failed. It was:
\`\`\`python
{{script}}
\`\`\`

What was wrong with it:
{{feedback}}`

const ANSWER_CORRECTED = 'Answer with the whole corrected script in one ```python block and nothing else.'
const ANSWER = 'Answer with the whole script in one ```python block and nothing else.'

/** The default texts. */
export const DEFAULT_PROMPTS: Prompts = {
  first: `${PLAN_OPENING}

${RULES}
${ONE_RESULT}

${GIVEN}

${ANSWER}`,

  retry: `${PLAN_OPENING}

${RULES}
${ONE_RESULT}

${GIVEN}

${FAILED_BEFORE}

Fix exactly that. ${ANSWER_CORRECTED}`,

  step: `${STEP_OPENING}

${RULES}
${STEP_RULES}

${GIVEN}

${EARLIER_DATA}

{{state}}

{{warning}}

This is step {{step}} of at most {{max_steps}}. ${ANSWER}`,

  stepRetry: `${STEP_OPENING}

${RULES}
${STEP_RULES}

${GIVEN}

${EARLIER_DATA}

{{state}}

{{warning}}

${FAILED_BEFORE}

This is still step {{step}} of at most {{max_steps}}. ${ANSWER_CORRECTED}`,

  finish: `You collected data for a task, and the last steps added nothing new. Write one last Python script that outputs the answer from ${DATA_BELOW}. There are no tools in the final step. The only function that you can call is emit_result.

- The variable collected holds the data as a list of {"step", "label", "data"}.
- Call emit_result(data) exactly once, with the best answer that the data allows. Say in the answer what is missing.

{{modules}}

Other variables:
{{inputs}}

{{files}}

{{output}}

Task:
{{task}}

${COLLECTED}
{{history}}
${NO_REFETCH}

${FAILED_BEFORE}

${ANSWER}`,
}

const SESSION_VARIABLES =
  'Variables of the session, which earlier steps made (name: type, shape or length):\n{{variables}}'

/** The default texts for steps that are cells of a session. */
export const SESSION_PROMPTS: Prompts = {
  ...DEFAULT_PROMPTS,
  step: inSession(DEFAULT_PROMPTS.step),
  stepRetry: inSession(DEFAULT_PROMPTS.stepRetry),
  finish: inSession(DEFAULT_PROMPTS.finish),
}

function inSession(template: string): string {
  return template
    .replace(ALONE, 'It runs as a cell of a notebook.')
    .replace(
      STEP_DATA,
      '- Variables, functions and imports stay from step to step: do not load or compute again what is there. You see the output of print(), the value of the last expression and emit_intermediate(label, data): show yourself only what you need to decide on the next step.',
    )
    .replace(NO_REFETCH, 'Do NOT fetch again what is shown above or held by a variable.')
    .replace('{{state}}', `${SESSION_VARIABLES}\n\n{{state}}`)
    .replace(DATA_BELOW, 'the data and the variables below')
    .replace(COLLECTED, `${SESSION_VARIABLES}\n\n${COLLECTED}`)
}
