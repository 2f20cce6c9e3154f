import {
  checkCollect,
  checkCollectLimits,
  checkFiles,
  checkHidden,
  checkInputs,
  checkSecrets,
  ExecutionMode,
  type Policy,
  ScriptExecutor,
} from '../executor/index.ts'
import { memoryStore } from '../journal/index.ts'
import { checkPricing, type LLMCaller } from '../llm/index.ts'
import { Redactor } from '../redaction/index.ts'
import { checkReviewer } from '../review/index.ts'
import { ScriptGenerator } from '../script/index.ts'
import { definedOf, didYouMean, MAX_TIMER_MS, type NamedPackage } from '../support/index.ts'
import { currentTrace } from '../telemetry/index.ts'
import { checkToolLimits, jsonSchemaOf, type ToolSet } from '../tools/index.ts'
import type { StandardSchema } from '../typed-result.ts'
import { Spending } from './budget.ts'
import type { Job, ScriptHost } from './job.ts'
import { checkWholeNumber, type TaskOptions } from './options.ts'

const MAX_RETRIES = 3
const MAX_STEPS = 10
const MAX_REPETITIONS = 2
const LLM_TIMEOUT_MS = 120_000

/** The modules that the policy `strict` lets a script import, the most useful first. */
const STRICT_MODULES = [
  'json',
  'math',
  're',
  'datetime',
  'collections',
  'itertools',
  'functools',
  'statistics',
  'decimal',
  'fractions',
  'random',
  'string',
  'textwrap',
  'time',
  'typing',
  'dataclasses',
  'enum',
  'copy',
  'heapq',
  'bisect',
  'hashlib',
  'base64',
  'uuid',
]

/** The parts of a job that are not options of its task. */
export interface JobBase {
  readonly mode: ExecutionMode
  readonly host: ScriptHost
  readonly llmCall: LLMCaller
  readonly tools: ToolSet | undefined
  /** The known packages that scripts can import in addition to the standard library. */
  readonly packages?: readonly NamedPackage[] | undefined
  /** True if the caller declared the packages: scripts may import them under any policy. */
  readonly areDeclared?: boolean | undefined
  /** Tells the model which packages its scripts may name. */
  readonly scriptPackages?: string | undefined
  /** Files that the host puts into its workspace before the first script; only the paths count. */
  readonly workspaceFiles?: Readonly<Record<string, unknown>> | undefined
}

/**
 * Resolves the options of a task and checks all of them before the model is asked.
 * @throws TypeError or SandglassError `invalid_request`, naming the option.
 */
export function makeJob<T>(task: string, base: JobBase, options: TaskOptions<T>): Job<T> {
  checkTask(task, base, options)
  const { policy = 'strict', allowModules = [], output } = options
  const inputs = checkInputs(options.inputs)
  const collect = checkCollect(options.collect)
  checkCollectLimits(options.collectLimits)
  const files = checkFiles(options.files, { rereadable: true })
  const keepsState = 'state' in options
  const secrets = checkSecrets(options.secrets)
  const hide = checkHidden(options.hide)
  const { mode, host, llmCall, tools, packages = [], areDeclared = false, scriptPackages } = base
  return {
    task,
    mode,
    host,
    llmCall,
    tools,
    generator: new ScriptGenerator({
      tools,
      ...definedOf(options, ['prompts', 'instructions', 'maxToolChars', 'maxHistoryChars', 'preamble', 'postamble']),
      // Redacted here, because prompts truncate the inputs, and redaction does not find a truncated secret.
      inputs: new Redactor(hide, secrets).value(inputs) as typeof inputs,
      files: Object.keys(options.files ?? base.workspaceFiles ?? {}),
      collect,
      keepsFiles: base.host.keepsFiles,
      keepsVariables: base.host.variables !== undefined,
      outputSchema: schemaOf(output),
      keepsState,
      modules: policy === 'strict' ? [...STRICT_MODULES, ...allowModules] : undefined,
      packages: policy === 'strict' && !areDeclared ? allowedOf(packages, allowModules) : packages,
      scriptPackages,
    }),
    llmTimeoutMs: Math.min(checkWholeNumber('llmTimeoutMs', options.llmTimeoutMs ?? LLM_TIMEOUT_MS, 1), MAX_TIMER_MS),
    toolLimits: options.toolLimits ?? {},
    policy,
    allowModules,
    limits: options.limits ?? {},
    maxRetries: checkWholeNumber('maxRetries', options.maxRetries ?? MAX_RETRIES, 0),
    maxSteps: checkWholeNumber('maxSteps', options.maxSteps ?? MAX_STEPS, 1),
    maxRepetitions: checkWholeNumber('maxRepetitions', options.maxRepetitions ?? MAX_REPETITIONS, 1),
    review: options.review,
    budget: options.budget ?? {},
    pricing: options.pricing ?? {},
    inputs,
    files: options.files,
    stagedFiles: files,
    collect,
    collectLimits: options.collectLimits,
    secrets,
    hide,
    output,
    state: keepsState ? { initial: options.state ?? null } : undefined,
    journal: options.journal ?? memoryStore({ maxRuns: 1 }),
    keepPrompts: options.keepPrompts ?? false,
    traceId: options.traceId ?? currentTrace()?.traceId ?? null,
    signal: options.signal,
    onEvent: options.onEvent,
  }
}

/** The packages of the allowed modules, if package and module have the same name. */
function allowedOf(packages: readonly NamedPackage[], allowModules: readonly string[]): NamedPackage[] {
  const allowed = new Set(allowModules.map((module) => module.split('.')[0]?.toLowerCase()))
  return packages.filter(({ name }) => allowed.has(name.toLowerCase()))
}

function checkTask<T>(task: string, { mode, tools }: JobBase, options: TaskOptions<T>): void {
  if (typeof task !== 'string' || task.trim() === '') {
    throw new TypeError('task: must be a text that describes the task')
  }
  const { policy, limits, toolLimits, inputs, budget = {}, pricing = {} } = options
  if (policy !== undefined && !POLICIES.includes(policy)) {
    throw new TypeError(`policy: no policy ${JSON.stringify(policy)}.${didYouMean(policy, POLICIES)}`)
  }
  new ScriptExecutor({ mode, ...(limits === undefined ? {} : { limits }) }) // checks the limits
  checkToolLimits(toolLimits ?? {})
  checkReviewer(options.review)
  checkWholeNumber('maxHistoryChars', options.maxHistoryChars ?? 0, 0)
  new Spending(budget, checkPricing(pricing))
  if (mode !== ExecutionMode.INTERACTIVE) return
  for (const name of ['collected', ...('state' in options ? ['state'] : [])]) {
    if (inputs !== undefined && Object.hasOwn(inputs, name)) {
      throw new TypeError(`inputs.${name}: scripts of a step already have a variable of this name; rename the input`)
    }
    if (tools?.tools.has(name) === true || tools?.pythonTools.has(name) === true) {
      throw new TypeError(`tools: ${name} is a variable of every step; rename the tool`)
    }
  }
}

const POLICIES: readonly string[] = ['off', 'standard', 'strict'] satisfies Policy[]

/** The JSON Schema of the answer for the prompt; undefined if the library of the schema cannot convert it. */
function schemaOf(output: StandardSchema<unknown> | undefined): unknown {
  if (output === undefined) return undefined
  try {
    return jsonSchemaOf(output as never, 'input')
  } catch {
    return undefined
  }
}
