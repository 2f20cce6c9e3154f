import {
  definedOf,
  filesText,
  type NamedPackage,
  packagesText,
  refuseUnknown,
  truncateAndCount,
  truncateMiddle,
} from '../support/index.ts'
import type { SessionVariable } from '../executor/index.ts'
import type { ToolSet } from '../tools/index.ts'
import { type Failure, feedbackOn, fieldsOf } from './feedback.ts'
import { type CollectedItem, historyText, inertJson } from './history.ts'
import { DEFAULT_PROMPTS, PLACEHOLDERS, type Prompts, SESSION_PROMPTS } from './prompts.ts'
import { checkTemplate, fillTemplate } from './template.ts'

/** Options of {@link ScriptGenerator}. */
export interface ScriptGeneratorOptions {
  /** The functions that scripts can call. */
  readonly tools?: ToolSet | undefined
  /** Replacements for the default prompts. */
  readonly prompts?: Partial<Prompts> | undefined
  /** Instructions for the model, placed before the functions. */
  readonly instructions?: string | undefined
  /** Maximum characters of the functions' stubs; further functions are listed by name. Default 12,000. */
  readonly maxToolChars?: number | undefined
  /** Maximum characters of the data of earlier steps in a prompt. Default 24,000. */
  readonly maxHistoryChars?: number | undefined
  /** Modules that scripts may import, if imports are restricted. */
  readonly modules?: readonly string[] | undefined
  /** Packages in addition to the standard library. */
  readonly packages?: readonly NamedPackage[] | undefined
  /** A sentence about the packages that scripts may name themselves. */
  readonly scriptPackages?: string | undefined
  /** JSON values that scripts have as globals; the prompt shows the beginning of each. */
  readonly inputs?: Readonly<Record<string, unknown>> | undefined
  /** Paths of the files that scripts find. */
  readonly files?: readonly string[] | undefined
  /** Globs of the files to collect. */
  readonly collect?: readonly string[] | undefined
  /** True if files stay from script to script. */
  readonly keepsFiles?: boolean | undefined
  /** True if variables stay from script to script. */
  readonly keepsVariables?: boolean | undefined
  /** JSON Schema of the result. */
  readonly outputSchema?: unknown
  /** Python that runs before every script, in its globals: imports and helpers that the model need not write. */
  readonly preamble?: string | undefined
  /** Python that runs after every script that did not fail. */
  readonly postamble?: string | undefined
  /** True if each step passes a value `state` to the next. */
  readonly keepsState?: boolean | undefined
}

/** A script with the code before and after it, in the form of a run and a check. */
export interface AssembledScript {
  readonly preamble: string
  readonly script: string
  readonly postamble: string
}

/** The progress of a task in INTERACTIVE mode. */
export interface StepView {
  /** From 1. */
  readonly step: number
  readonly maxSteps: number
  /** All data of earlier steps. */
  readonly collected: readonly CollectedItem[]
  /** The last failed attempt of this step, if there is one. */
  readonly failure: Failure | undefined
  /** True if this step must output the answer. */
  readonly forceFinish: boolean
  /** The `state` that the last step passed on. */
  readonly state: unknown
  /** The variables that earlier steps left; undefined if variables do not stay. */
  readonly variables?: readonly SessionVariable[] | undefined
  /** After a repetition: the number of further repetitions after which the next step is the last. */
  readonly repetitionsLeft?: number | undefined
}

const PROMPT_NAMES: readonly (keyof Prompts)[] = ['first', 'retry', 'step', 'stepRetry', 'finish']
const TOOL_CHARS = 12_000
const INPUT_CHARS = 300
const SCRIPT_CHARS = 32_000
const LINE_CHARS = 2000

/**
 * Writes the prompts of a task. Tools are rendered once. Text from tools and earlier scripts is inserted as JSON or without
 * fences, so that it cannot close the section that contains it.
 */
export class ScriptGenerator {
  readonly #prompts: Prompts
  readonly #common: Readonly<Record<string, string>>
  readonly #fields: readonly string[]
  readonly #files: string
  readonly #keepsState: boolean
  readonly #maxHistoryChars: number | undefined
  readonly #preamble: string
  readonly #postamble: string

  /** @throws TypeError for an unknown prompt, one that is not a string, or one with an unknown placeholder. */
  constructor(options: ScriptGeneratorOptions = {}) {
    const { tools, prompts = {}, instructions = '', maxToolChars = TOOL_CHARS, modules, inputs = {} } = options
    refuseUnknown('prompts', prompts, PROMPT_NAMES)
    this.#prompts = {
      ...(options.keepsVariables === true ? SESSION_PROMPTS : DEFAULT_PROMPTS),
      ...definedOf(prompts, PROMPT_NAMES),
    }
    for (const [name, template] of Object.entries(this.#prompts)) checkTemplate(name, template, PLACEHOLDERS)
    this.#fields = tools === undefined ? [] : fieldsOf(tools.checked)
    const { files = [], collect = [], keepsFiles = false, keepsVariables = false } = options
    const kept = keepsVariables ? KEPT_FILES_ALONE : KEPT_FILES
    this.#files = [filesText(files, collect), keepsFiles ? kept : ''].filter((sentence) => sentence !== '').join('\n')
    this.#keepsState = options.keepsState === true
    this.#maxHistoryChars = options.maxHistoryChars
    this.#preamble = options.preamble ?? ''
    this.#postamble = options.postamble ?? ''
    this.#common = {
      instructions,
      tools: tools === undefined ? '' : removeFences(tools.stubs(maxToolChars)),
      preamble: removeFences(this.#preamble.trimEnd()),
      inputs: Object.entries(inputs)
        .map(([name, value]) => `- ${name}: ${inputText(value)}`)
        .join('\n'),
      files: this.#files,
      modules: [
        ...(modules === undefined ? [] : [`Modules that you can import: ${modules.join(', ')}.`]),
        packagesText(options.packages),
        options.scriptPackages ?? '',
      ]
        .filter((sentence) => sentence !== '')
        .join('\n')
        .trim(),
      output:
        options.outputSchema === undefined
          ? ''
          : `The data of emit_result must match this JSON Schema: ${inertJson(options.outputSchema)}`,
    }
  }

  /**
   * A script with its preamble and postamble. They are compiled separately, so that the script keeps its own line numbers
   * in tracebacks, checks and tool calls.
   */
  assemble(body: string): AssembledScript {
    return { preamble: this.#preamble, script: body, postamble: this.#postamble }
  }

  /** The prompt of the first attempt in PLAN mode. */
  firstPrompt(task: string): string {
    return fillTemplate(this.#prompts.first, { ...this.#common, task })
  }

  /** The prompt of a further attempt: the first prompt, the last script and the feedback on it. */
  retryPrompt(task: string, failure: Failure): string {
    return fillTemplate(this.#prompts.retry, { ...this.#common, ...this.#describeFailure(failure), task })
  }

  /** The prompt of a step in INTERACTIVE mode, with the data of earlier steps. */
  stepPrompt(task: string, view: StepView): string {
    const { step, maxSteps, collected, failure, forceFinish, state, variables = [], repetitionsLeft } = view
    const { step: first, stepRetry, finish } = this.#prompts
    return fillTemplate(forceFinish ? finish : failure === undefined ? first : stepRetry, {
      ...this.#common,
      ...(failure === undefined ? {} : this.#describeFailure(failure)),
      task,
      history: historyText(collected, this.#maxHistoryChars) || (forceFinish ? '(none)' : ''),
      step: String(step),
      max_steps: String(maxSteps),
      variables: variablesText(variables),
      warning: repetitionsLeft === undefined ? '' : warningText(repetitionsLeft),
      state: this.#keepsState ? `${STATE}${step === 1 ? '' : ` Its value is now ${inputText(state)}`}` : '',
    })
  }

  /** Returns the feedback on a failure for a prompt. */
  feedback(failure: Failure): string {
    return feedbackOn(failure, this.#fields, this.#files)
  }

  #describeFailure(failure: Failure): { script: string; feedback: string } {
    return { script: removeFences(cutScript(failure.script ?? '')), feedback: this.feedback(failure) }
  }
}

const KEPT_FILES = 'Files in the working directory stay from script to script; nothing else does.'
const KEPT_FILES_ALONE = 'Files in the working directory stay from script to script, too.'

const STATE =
  'The variable state holds the value that the last step handed on (None at first). emit_intermediate("state", value) hands a new JSON value to the next step.'

/** One line for each variable. Names and types come from scripts. */
function variablesText(variables: readonly SessionVariable[]): string {
  const shown = variables.slice(0, SHOWN_VARIABLES).map(({ name, type, shape }) => {
    const size = shape === null || shape.length === 0 ? '' : `, ${shape.join(' x ')}`
    // A class of the harness, such as that of a tool's answer, is shown without its module.
    return `- ${plain(name)}: ${plain(type.replace(/^sandglass_harness\..*\./, ''))}${size}`
  })
  const more = variables.length - shown.length
  return [...shown, ...(more === 0 ? [] : [`(${more} more are not shown)`])].join('\n')
}

const SHOWN_VARIABLES = 100
const NAME_CHARS = 100

function plain(text: string): string {
  return truncateMiddle(text.replaceAll(/[^\p{L}\p{N}_.[\], ]/gu, '?'), NAME_CHARS)
}

function warningText(repetitionsLeft: number): string {
  const more = repetitionsLeft === 1 ? 'one more script' : `${repetitionsLeft} more scripts`
  return `You repeat yourself: the last script added nothing new. Do something different, or call emit_result(data) with the answer now. After ${more} that adds nothing, one final step is left, without the functions: it can only answer from the data so far.`
}

/** Truncates the long lines of a script, which are data, and a long script. */
function cutScript(script: string): string {
  const lines = script.split('\n').map((line) => truncateMiddle(line, LINE_CHARS))
  return truncateMiddle(lines.join('\n'), SCRIPT_CHARS, '\n')
}

/** Replaces fences in a text, so that it cannot close the fence around it. */
function removeFences(text: string): string {
  return text.replaceAll('```', "'''")
}

function inputText(value: unknown): string {
  return truncateAndCount(inertJson(value), INPUT_CHARS)
}
