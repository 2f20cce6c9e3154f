import { definedOf, refuseUnknown } from '../support/index.ts'
import type { ToolSet } from '../tools/index.ts'
import type { Failure } from './failure.ts'
import { feedbackOn } from './feedback.ts'
import { fieldsOf } from './fields.ts'
import { type CollectedItem, historyText, json } from './history.ts'
import { DEFAULT_PROMPTS, PLACEHOLDERS, type Prompts } from './prompts.ts'
import { checkTemplate, filled } from './template.ts'

/** What a {@link ScriptGenerator} is made of (requirement OR-12). */
export interface ScriptGeneratorOptions {
  /** The functions that scripts can call. */
  readonly tools?: ToolSet | undefined
  /** Texts in place of the default ones. */
  readonly prompts?: Partial<Prompts> | undefined
  /** Said to the model before the functions. */
  readonly instructions?: string | undefined
  /** Characters of the functions' stubs. What does not fit is listed by name. Default 12,000. */
  readonly maxToolChars?: number | undefined
  /** Modules that scripts may import, where not all can be. */
  readonly modules?: readonly string[] | undefined
  /** JSON values that scripts have as globals: what they look like is told. */
  readonly inputs?: Readonly<Record<string, unknown>> | undefined
  /** What the result must look like, as JSON Schema. */
  readonly outputSchema?: unknown
  /** Python that is run before every script, in its globals: imports and helpers that a model need not write. */
  readonly preamble?: string | undefined
  /** The same behind every script that got through. */
  readonly postamble?: string | undefined
  /** Whether a step hands a value `state` to the next. */
  readonly keepsState?: boolean | undefined
}

/** What is run for one body (requirement OR-12); a run and a check take it as it is. */
export interface AssembledScript {
  readonly preamble: string
  readonly script: string
  readonly postamble: string
}

/** Where a run in INTERACTIVE mode stands. */
export interface StepView {
  /** From 1. */
  readonly step: number
  readonly maxSteps: number
  /** All data so far. */
  readonly collected: readonly CollectedItem[]
  /** What the last attempt of this step came to. */
  readonly failure: Failure | undefined
  /** Whether only the answer is wanted. */
  readonly forceFinish: boolean
  /** What the last step handed on, where steps do. */
  readonly state: unknown
}

const PROMPT_NAMES: readonly (keyof Prompts)[] = ['first', 'retry', 'step', 'stepRetry', 'finish']
const TOOL_CHARS = 12_000
const INPUT_CHARS = 300

/**
 * Writes the prompts of a run (mission: ScriptGenerator; requirement OR-12). Tools are rendered once. Everything that
 * comes from tools or earlier scripts goes in as JSON, or with its fences taken off: it cannot end the part that it
 * stands in.
 */
export class ScriptGenerator {
  readonly #prompts: Prompts
  readonly #common: Readonly<Record<string, string>>
  readonly #fields: readonly string[]
  readonly #keepsState: boolean
  readonly #preamble: string
  readonly #postamble: string

  /** @throws TypeError for a prompt that does not exist, is no string, or holds a placeholder that nothing is known for. */
  constructor(options: ScriptGeneratorOptions = {}) {
    const { tools, prompts = {}, instructions = '', maxToolChars = TOOL_CHARS, modules, inputs = {} } = options
    refuseUnknown('prompts', prompts, PROMPT_NAMES)
    this.#prompts = { ...DEFAULT_PROMPTS, ...definedOf(prompts, PROMPT_NAMES) }
    for (const [name, template] of Object.entries(this.#prompts)) checkTemplate(name, template, PLACEHOLDERS)
    this.#fields = tools === undefined ? [] : fieldsOf(tools.checked)
    this.#keepsState = options.keepsState === true
    this.#preamble = options.preamble ?? ''
    this.#postamble = options.postamble ?? ''
    this.#common = {
      instructions,
      tools: tools === undefined ? '' : unfenced(tools.stubs(maxToolChars)),
      preamble: unfenced(this.#preamble.trimEnd()),
      inputs: Object.entries(inputs)
        .map(([name, value]) => `- ${name}: ${inputText(value)}`)
        .join('\n'),
      modules: modules === undefined ? '' : `Modules that can be imported: ${modules.join(', ')}.`,
      output:
        options.outputSchema === undefined
          ? ''
          : `The data of emit_result must match this JSON Schema: ${json(options.outputSchema)}`,
    }
  }

  /**
   * What is run for a script: the body, and what the caller has around it. They are compiled apart, so that the body keeps
   * its own line numbers in tracebacks, checks and tool calls.
   */
  assemble(body: string): AssembledScript {
    return { preamble: this.#preamble, script: body, postamble: this.#postamble }
  }

  /** The prompt of the first attempt in PLAN mode. */
  firstPrompt(task: string): string {
    return filled(this.#prompts.first, { ...this.#common, task })
  }

  /** The prompt of a further attempt: the same, the last script, and what was wrong with it. */
  retryPrompt(task: string, failure: Failure): string {
    return filled(this.#prompts.retry, { ...this.#common, ...this.#told(failure), task })
  }

  /** The prompt of a step in INTERACTIVE mode, with all data so far. */
  stepPrompt(task: string, view: StepView): string {
    const { step, maxSteps, collected, failure, forceFinish, state } = view
    const { step: first, stepRetry, finish } = this.#prompts
    return filled(forceFinish ? finish : failure === undefined ? first : stepRetry, {
      ...this.#common,
      ...(failure === undefined ? {} : this.#told(failure)),
      task,
      history: historyText(collected) || (forceFinish ? '(none)' : ''),
      step: String(step),
      max_steps: String(maxSteps),
      state: this.#keepsState ? `${STATE}${step === 1 ? '' : ` Now it is ${inputText(state)}`}` : '',
    })
  }

  /** What was wrong, in the words of the prompts. */
  feedback(failure: Failure): string {
    return feedbackOn(failure, this.#fields)
  }

  #told(failure: Failure): { script: string; feedback: string } {
    return { script: unfenced(failure.script ?? ''), feedback: this.feedback(failure) }
  }
}

const STATE =
  'The variable state holds what the last step handed on (None at first); emit_intermediate("state", value) hands a new JSON value to the next step.'

/** A text that cannot end the fence that it stands in. */
function unfenced(text: string): string {
  return text.replaceAll('```', "'''")
}

function inputText(value: unknown): string {
  const text = json(value)
  return text.length <= INPUT_CHARS
    ? text
    : `${text.slice(0, INPUT_CHARS).toWellFormed()} … (${text.length} characters)`
}
