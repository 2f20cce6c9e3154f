import { ExecutionMode, type Policy } from '../executor/index.ts'
import type { SandglassOptions } from '../index.ts'
import { type Requirement, REQUIREMENTS, type ResourceLimits, resolveLimits } from '../sandbox/index.ts'
import { didYouMean } from '../support/index.ts'
import type { Given } from './args.ts'
import { UsageError } from './failure.ts'
import { parseNumber, parseSize } from './sizes.ts'
import { reworded } from './wording.ts'

/** What the flags that `run` and `batch` share ask for. */
export interface SandboxFlags {
  readonly options: SandglassOptions
  readonly mode: ExecutionMode
  /** What `--policy` says; undefined without it. */
  readonly policy: Policy | undefined
}

const ENGINES = ['auto', 'local', 'docker', 'pyodide'] as const
/** What a script is checked for before it runs. */
export const POLICIES: readonly Policy[] = ['off', 'standard', 'strict']
const MODES: readonly string[] = Object.values(ExecutionMode)

/**
 * Checks the shared flags.
 * @throws UsageError.
 */
export function sandboxFlags(given: Given): SandboxFlags {
  const policy = oneOf(given, '--policy', POLICIES)
  const engine = chosenEngine(given)
  const image = given.last('--image')
  const limits = givenLimits(given)
  const toolsDir = given.last('--tools-dir')
  const required = requirements(given)
  const mode = oneOf(given, '--mode', MODES)
  return {
    options: {
      engine,
      limits,
      ...(image === undefined ? {} : { docker: { image } }),
      ...(toolsDir === undefined ? {} : { toolsDir }),
      ...(required.length === 0 ? {} : { require: required }),
    },
    mode: mode === ExecutionMode.PLAN ? ExecutionMode.PLAN : ExecutionMode.INTERACTIVE,
    policy: POLICIES.find((one) => one === policy),
  }
}

function chosenEngine(given: Given): (typeof ENGINES)[number] {
  const engine = ENGINES.find((name) => name === oneOf(given, '--engine', ENGINES)) ?? 'auto'
  if (engine !== 'docker' && given.has('--image')) {
    throw new UsageError('invalid_request', '--image belongs to the engine docker: add --engine docker')
  }
  return engine
}

function givenLimits(given: Given): ResourceLimits {
  const sized = (flag: string): number | undefined => parsed(given.last(flag), (text) => parseSize(flag, text))
  const counted = (flag: string): number | undefined => parsed(given.last(flag), (text) => parseNumber(flag, text))
  const limits = withoutUndefined({
    executionTimeoutSec: counted('--timeout'),
    memoryBytes: sized('--memory'),
    cpus: counted('--cpus'),
    pids: counted('--pids'),
    maxOutputBytes: sized('--max-output'),
  })
  try {
    resolveLimits(limits)
  } catch (error) {
    throw reworded(error, 'flags')
  }
  return limits
}

function requirements(given: Given): Requirement[] {
  return given
    .all('--require')
    .flatMap((list) => list.split(','))
    .map((item) => {
      const known = REQUIREMENTS.find((one) => one === item.trim())
      if (known !== undefined) return known
      throw new UsageError(
        'invalid_request',
        `--require: no item ${JSON.stringify(item)}.${didYouMean(item, REQUIREMENTS)} Known are ${REQUIREMENTS.join(', ')}`,
      )
    })
}

function oneOf(given: Given, flag: string, known: readonly string[]): string | undefined {
  const value = given.last(flag)
  if (value === undefined || known.includes(value)) return value
  throw new UsageError(
    'invalid_request',
    `${flag}: no ${flag.slice(2)} ${JSON.stringify(value)}.${didYouMean(value, known)} Known are ${known.join(', ')}`,
  )
}

function parsed<T>(text: string | undefined, parse: (text: string) => T): T | undefined {
  return text === undefined ? undefined : parse(text)
}

function withoutUndefined<T extends object>(given: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}
