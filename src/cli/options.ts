import { type EngineRow, ENGINES, type EngineTable } from '../engines/index.ts'
import { ExecutionMode, type Policy } from '../executor/index.ts'
import type { SandglassOptions } from '../index.ts'
import { type Requirement, REQUIREMENTS, type ResourceLimits, resolveLimits } from '../sandbox/index.ts'
import { didYouMean } from '../support/index.ts'
import type { Given } from './args.ts'
import { UsageError } from './failure.ts'
import { parseNumber, parseSize } from './sizes.ts'
import { reword } from './wording.ts'

/** The options from the flags that the commands with a sandbox share. */
export interface SandboxFlags {
  readonly options: SandglassOptions
  readonly mode: ExecutionMode
  /** The value of `--policy`; undefined without it. */
  readonly policy: Policy | undefined
}

/** The values of `--policy`. */
export const POLICIES: readonly Policy[] = ['off', 'standard', 'strict']
const MODES: readonly string[] = Object.values(ExecutionMode)

/**
 * Parses the shared flags.
 * @throws UsageError.
 */
export function parseSandboxFlags(given: Given, engines: EngineTable = ENGINES): SandboxFlags {
  const policy = parseOneOf(given, '--policy', POLICIES)
  const engine = chooseEngine(given, engines)
  const limits = parseLimits(given)
  const toolsDir = given.last('--tools-dir')
  const required = parseRequirements(given)
  const packages = given.all('--with')
  const mode = parseOneOf(given, '--mode', MODES)
  return {
    options: {
      engine: engine as SandglassOptions['engine'] & string,
      limits,
      ...engineOptions(given, engine, engines),
      ...(toolsDir === undefined ? {} : { toolsDir }),
      ...(packages.length === 0 ? {} : { dependencies: packages }),
      ...(required.length === 0 ? {} : { require: required }),
    },
    mode: mode === ExecutionMode.PLAN ? ExecutionMode.PLAN : ExecutionMode.INTERACTIVE,
    policy: POLICIES.find((one) => one === policy),
  }
}

/**
 * The engines that a command asks: the one that `--engine` names, with its options, else all that need not be named.
 * @throws UsageError.
 */
export function enginesToAsk(
  given: Given,
  engines: EngineTable,
): readonly { readonly name: string; readonly row: EngineRow; readonly options: Record<string, string> }[] {
  const engine = chooseEngine(given, engines)
  return Object.entries(engines)
    .filter(([name, row]) => (engine === 'auto' ? row.isNamedOnly !== true : name === engine))
    .map(([name, row]) => ({ name, row, options: engineOptions(given, name, engines)[name] ?? {} }))
}

function chooseEngine(given: Given, engines: EngineTable): string {
  const engine = parseOneOf(given, '--engine', ['auto', ...Object.keys(engines)]) ?? 'auto'
  const flags = Object.values(engines).flatMap((row) => Object.keys(row.flags))
  for (const flag of new Set(flags)) if (given.has(flag)) refuseForeignFlag(flag, engine, engines)
  return engine
}

function refuseForeignFlag(flag: string, engine: string, engines: EngineTable): void {
  const owners = Object.keys(engines).filter((name) => Object.hasOwn(engines[name]?.flags ?? {}, flag))
  if (owners.includes(engine)) return
  const add = owners.map((name) => `--engine ${name}`).join(' or ')
  throw new UsageError('invalid_request', `${flag} belongs to the engine ${owners.join(' or ')}: add ${add}`)
}

/** The options of the chosen engine that its own flags set, under its name. */
function engineOptions(given: Given, engine: string, engines: EngineTable): Record<string, Record<string, string>> {
  const set = Object.entries(engines[engine]?.flags ?? {}).flatMap(([flag, { option }]) => {
    const value = given.last(flag)
    return value === undefined ? [] : [[option, value] as const]
  })
  return set.length === 0 ? {} : { [engine]: Object.fromEntries(set) }
}

function parseLimits(given: Given): ResourceLimits {
  const parseSizeFlag = (flag: string): number | undefined =>
    parseIfGiven(given.last(flag), (text) => parseSize(flag, text))
  const parseCountFlag = (flag: string): number | undefined =>
    parseIfGiven(given.last(flag), (text) => parseNumber(flag, text))
  const limits = withoutUndefined({
    executionTimeoutSec: parseCountFlag('--timeout'),
    maxToolWaitSec: parseCountFlag('--max-tool-wait'),
    memoryBytes: parseSizeFlag('--memory'),
    cpus: parseCountFlag('--cpus'),
    pids: parseCountFlag('--pids'),
    maxOutputBytes: parseSizeFlag('--max-output'),
  })
  try {
    resolveLimits(limits)
  } catch (error) {
    throw reword(error, 'flags')
  }
  return limits
}

function parseRequirements(given: Given): Requirement[] {
  return given
    .all('--require')
    .flatMap((list) => list.split(','))
    .map((item) => {
      const known = REQUIREMENTS.find((one) => one === item.trim())
      if (known !== undefined) return known
      throw new UsageError(
        'invalid_request',
        `--require: unknown requirement ${JSON.stringify(item)}.${didYouMean(item, REQUIREMENTS)} Choose one of: ${REQUIREMENTS.join(', ')}`,
      )
    })
}

function parseOneOf(given: Given, flag: string, known: readonly string[]): string | undefined {
  const value = given.last(flag)
  if (value === undefined || known.includes(value)) return value
  throw new UsageError(
    'invalid_request',
    `${flag}: unknown ${flag.slice(2)} ${JSON.stringify(value)}.${didYouMean(value, known)} Choose one of: ${known.join(', ')}`,
  )
}

function parseIfGiven<T>(text: string | undefined, parse: (text: string) => T): T | undefined {
  return text === undefined ? undefined : parse(text)
}

function withoutUndefined<T extends object>(given: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}
