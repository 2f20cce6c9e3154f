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

const ANSWER = 'Answer with the whole script in one ```python block and nothing else.'

/** The texts in use unless others are given. */
export const DEFAULT_PROMPTS: Prompts = {
  first: `You solve a task by writing one Python script.

${RULES}
- Call emit_result(data) exactly once, at the end, with the whole answer.

${GIVEN}

${ANSWER}`,

  retry: `You solve a task by writing one Python script. Your last script did not do it.

${RULES}
- Call emit_result(data) exactly once, at the end, with the whole answer.

${GIVEN}

Your last script:
\`\`\`python
{{script}}
\`\`\`

What was wrong with it:
{{feedback}}

Mend exactly that. Answer with the whole corrected script in one \`\`\`python block and nothing else.`,

  step: `You solve a task step by step. In each step you write one short Python script, see what it emitted, and go on.

${RULES}
- Hand what later steps need to emit_intermediate(label, data), under a label that says what it is: variables are gone after the step.
- As soon as the task can be answered, call emit_result(data) with the whole answer: that ends the work.

${GIVEN}

Data of earlier steps, also in the variable collected, a list of {"step", "label", "data"}:
{{history}}

Do NOT re-fetch data already shown above. This is step {{step}} of at most {{max_steps}}. ${ANSWER}`,

  stepRetry: `You solve a task step by step. In each step you write one short Python script, see what it emitted, and go on. The last script of this step did not do.

${RULES}
- Hand what later steps need to emit_intermediate(label, data), under a label that says what it is: variables are gone after the step.
- As soon as the task can be answered, call emit_result(data) with the whole answer: that ends the work.

${GIVEN}

Data of earlier steps, also in the variable collected, a list of {"step", "label", "data"}:
{{history}}

Your last script:
\`\`\`python
{{script}}
\`\`\`

What was wrong with it:
{{feedback}}

Do NOT re-fetch data already shown above. This is still step {{step}} of at most {{max_steps}}. Answer with the whole corrected script in one \`\`\`python block and nothing else.`,

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

Your last script:
\`\`\`python
{{script}}
\`\`\`

What was wrong with it:
{{feedback}}

Do NOT re-fetch data already shown above. ${ANSWER}`,
}
