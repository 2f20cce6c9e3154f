import { ExecutionMode, type Policy } from '../executor/index.ts'
import type { RunOptions } from '../index.ts'
import { type ResourceLimits, resolveLimits } from '../sandbox/index.ts'
import { didYouMean } from '../support/index.ts'
import { UsageError } from './failure.ts'
import { POLICIES } from './options.ts'
import { reworded } from './wording.ts'

/** One line of a batch that can be started. */
export interface BatchRequest {
  readonly id: string
  /** Number of its line, from 1. */
  readonly line: number
  /** Ids that must be answered first. */
  readonly after: readonly string[]
  /** The id whose sandbox is asked for. */
  readonly sameSandboxAs: string | undefined
  readonly script: string
  readonly options: RunOptions
}

type Json = Readonly<Record<string, unknown>>

const KEYS: readonly string[] = [
  'id',
  'script',
  'mode',
  'policy',
  'timeout_s',
  'limits',
  'execution_id',
  'secrets',
  'required_secrets',
  'inputs',
  'files',
  'collect',
  'after',
  'same_sandbox_as',
]
const LIMITS = {
  memory_bytes: 'memoryBytes',
  cpus: 'cpus',
  pids: 'pids',
  max_output_bytes: 'maxOutputBytes',
  disk_bytes: 'diskBytes',
} as const satisfies Record<string, keyof ResourceLimits>
const FILE_KEYS: readonly string[] = ['path', 'content_base64', 'mode']
const MODES: readonly string[] = Object.values(ExecutionMode)
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/**
 * A line as JSON, with its id where it has a usable one.
 * @throws UsageError when it is no object with a string `id`.
 */
export function parseLine(text: string): Json & { readonly id: string } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw wrong('the line is no JSON')
  }
  if (!isObject(value)) throw wrong('the line is no JSON object')
  const { id } = value
  if (typeof id !== 'string') throw wrong(id === undefined ? 'the line has no "id"' : 'id: it is no string')
  return { ...value, id }
}

const HUGE_INTEGER = /^-?\d{22,}$/

/**
 * An integer of more than 21 digits, which `JSON.parse` rounds to a float that nothing tells from `1e21`; smaller ones
 * are refused where their path is known.
 * @throws UsageError
 */
export function refuseHugeIntegers(text: string): void {
  if (!/\d{22}/.test(text)) return
  JSON.parse(text, (_key, value: unknown, context?: { source?: string }) => {
    const source = context?.source ?? ''
    if (typeof value !== 'number' || !HUGE_INTEGER.test(source)) return value
    throw wrong(
      `${source.slice(0, 80)} is an integer beyond 2^53, which JSON does not carry exactly; pass it as a string`,
    )
  })
}

/**
 * Checks what a request asks for; what depends on the executor is left to it.
 * @param defaults limits that the line's own are laid over.
 * @throws SandglassError naming the key.
 */
export function checkRequest(
  given: Json & { readonly id: string },
  line: number,
  mode: ExecutionMode,
  defaults: ResourceLimits,
): BatchRequest {
  refuseUnknown('', given, KEYS)
  const { id, script, after } = given
  if (typeof script !== 'string')
    throw wrong(script === undefined ? 'the line has no "script"' : 'script: it is no string')
  const policy = policyOf(given)
  const sameSandboxAs = idOf(given, 'same_sandbox_as')
  const first = after === undefined ? undefined : idOf(given, 'after')
  const limits = limitsOf(given)
  try {
    resolveLimits({ ...defaults, ...limits })
  } catch (error) {
    throw reworded(error, 'keys')
  }
  return {
    id,
    line,
    // As where a script is read from a file: the mark is how some editors begin one, and Python refuses it in a text.
    script: script.startsWith('\uFEFF') ? script.slice(1) : script,
    after: [...new Set([first, sameSandboxAs].filter((one) => one !== undefined))],
    sameSandboxAs,
    options: { ...passedOn(given), mode: modeOf(given) ?? mode, limits, ...(policy === undefined ? {} : { policy }) },
  }
}

function policyOf({ policy }: Json): Policy | undefined {
  if (policy === undefined) return undefined
  const known = POLICIES.find((one) => one === policy)
  if (known === undefined) throw wrong(`policy: ${shown(policy)} is no policy; off, standard or strict`)
  return known
}

function modeOf({ mode }: Json): ExecutionMode | undefined {
  if (mode === undefined) return undefined
  const known = Object.values(ExecutionMode).find((one) => one === mode)
  if (known === undefined) throw wrong(`mode: ${shown(mode)} is no mode; ${MODES.join(' or ')}`)
  return known
}

function idOf(given: Json, key: 'after' | 'same_sandbox_as'): string | undefined {
  const value = given[key]
  if (value === undefined || typeof value === 'string') return value
  throw wrong(`${key}: ${shown(value)} is no id of another request`)
}

/** Values are passed on as they are: the range of each limit is checked where it is known. */
function limitsOf({ limits = {}, timeout_s: timeout }: Json): ResourceLimits {
  if (!isObject(limits)) throw wrong(`limits: ${shown(limits)} is no object`)
  refuseUnknown('limits.', limits, Object.keys(LIMITS))
  const entries = Object.entries(LIMITS).flatMap(([key, name]) =>
    Object.hasOwn(limits, key) ? [[name, limits[key]]] : [],
  )
  if (timeout !== undefined) entries.push(['executionTimeoutSec', timeout])
  return Object.fromEntries(entries) as ResourceLimits
}

/** What the executor checks itself, under its own names. */
function passedOn(given: Json): Partial<RunOptions> {
  const renamed: [string, string][] = [
    ['secrets', 'secrets'],
    ['required_secrets', 'requiredSecrets'],
    ['inputs', 'inputs'],
    ['collect', 'collect'],
  ]
  const entries = renamed.flatMap(([key, name]) => (Object.hasOwn(given, key) ? [[name, given[key]] as const] : []))
  const { execution_id: executionId, files } = given
  return {
    ...(Object.fromEntries(entries) as Partial<RunOptions>),
    ...(files === undefined ? {} : { files: filesOf(files) }),
    // null asks for a generated one
    ...(executionId === undefined || executionId === null ? {} : { executionId: executionId as string }),
  }
}

function filesOf(files: unknown): NonNullable<RunOptions['files']> {
  if (!Array.isArray(files)) throw wrong(`files: ${shown(files)} is no array`)
  const entries = (files as unknown[]).map((file, index) => fileOf(file, `files[${index}]`))
  const paths = new Set(entries.map(([path]) => path))
  if (paths.size < entries.length) throw wrong('files: two of them have the same path')
  return Object.fromEntries(entries)
}

function fileOf(file: unknown, where: string): [string, { content: Uint8Array; mode?: number }] {
  if (!isObject(file)) throw wrong(`${where}: ${shown(file)} is no object`)
  refuseUnknown(`${where}.`, file, FILE_KEYS)
  const { path, content_base64: content, mode } = file
  if (typeof path !== 'string') throw wrong(`${where}.path: it is no string`)
  if (typeof content !== 'string' || content.length % 4 !== 0 || !BASE64.test(content)) {
    throw wrong(`${where}.content_base64: it is no base64`)
  }
  return [path, { content: Buffer.from(content, 'base64'), ...(mode === undefined ? {} : { mode: mode as number }) }]
}

function refuseUnknown(where: string, given: Json, known: readonly string[]): void {
  const unknown = Object.keys(given).find((key) => !known.includes(key))
  if (unknown === undefined) return
  throw wrong(`no key ${JSON.stringify(where + unknown.slice(0, 80))}.${didYouMean(unknown.slice(0, 80), known)}`)
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function shown(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}

function wrong(message: string): UsageError {
  return new UsageError('invalid_request', message)
}
