import { ExecutionMode, type Policy } from '../executor/index.ts'
import type { RunOptions } from '../index.ts'
import { type ResourceLimits, resolveLimits } from '../sandbox/index.ts'
import { didYouMean, formatValue } from '../support/index.ts'
import { UsageError } from './failure.ts'
import { POLICIES } from './options.ts'
import { reword } from './wording.ts'

/** One line of a batch that can be started. */
export interface BatchRequest {
  readonly id: string
  /** Number of its line, from 1. */
  readonly line: number
  /** Ids that must be answered first. */
  readonly after: readonly string[]
  /** The id of the request whose sandbox it wants. */
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
  'dependencies',
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
 * Parses a line as a JSON object with an id.
 * @throws UsageError when it is not an object with a string `id`.
 */
export function parseLine(text: string): Json & { readonly id: string } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw wrong('the line is not JSON')
  }
  if (!isObject(value)) throw wrong('the line is not a JSON object')
  const { id } = value
  if (typeof id !== 'string') throw wrong(id === undefined ? 'the line has no "id"' : 'id: it is not a string')
  return { ...value, id }
}

const HUGE_INTEGER = /^-?\d{22,}$/

/**
 * Refuses an integer of more than 21 digits: `JSON.parse` rounds it to a float that looks like `1e21`. Smaller ones
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
 * Checks a request; the executor checks the rest.
 * @param defaults limits that apply where the line has none.
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
    throw wrong(script === undefined ? 'the line has no "script"' : 'script: it is not a string')
  const policy = policyOf(given)
  const sameSandboxAs = idOf(given, 'same_sandbox_as')
  const first = after === undefined ? undefined : idOf(given, 'after')
  const limits = limitsOf(given)
  try {
    resolveLimits({ ...defaults, ...limits })
  } catch (error) {
    throw reword(error, 'keys')
  }
  return {
    id,
    line,
    // Some editors write a byte order mark, which Python refuses in a text.
    script: script.startsWith('\uFEFF') ? script.slice(1) : script,
    after: [...new Set([first, sameSandboxAs].filter((one) => one !== undefined))],
    sameSandboxAs,
    options: {
      ...pickRunOptions(given),
      mode: modeOf(given) ?? mode,
      limits,
      ...(policy === undefined ? {} : { policy }),
    },
  }
}

function policyOf({ policy }: Json): Policy | undefined {
  if (policy === undefined) return undefined
  const known = POLICIES.find((one) => one === policy)
  if (known === undefined) throw wrong(`policy: ${formatValue(policy)} is not a policy; use off, standard or strict`)
  return known
}

function modeOf({ mode }: Json): ExecutionMode | undefined {
  if (mode === undefined) return undefined
  const known = Object.values(ExecutionMode).find((one) => one === mode)
  if (known === undefined) throw wrong(`mode: ${formatValue(mode)} is not a mode; use ${MODES.join(' or ')}`)
  return known
}

function idOf(given: Json, key: 'after' | 'same_sandbox_as'): string | undefined {
  const value = given[key]
  if (value === undefined || typeof value === 'string') return value
  throw wrong(`${key}: ${formatValue(value)} is not the id of another request`)
}

/** Values are passed on unchecked: `resolveLimits` checks the range of each limit. */
function limitsOf({ limits = {}, timeout_s: timeout }: Json): ResourceLimits {
  if (!isObject(limits)) throw wrong(`limits: ${formatValue(limits)} is not an object`)
  refuseUnknown('limits.', limits, Object.keys(LIMITS))
  const entries = Object.entries(LIMITS).flatMap(([key, name]) =>
    Object.hasOwn(limits, key) ? [[name, limits[key]]] : [],
  )
  if (timeout !== undefined) entries.push(['executionTimeoutSec', timeout])
  return Object.fromEntries(entries) as ResourceLimits
}

/** Options that the executor checks, under its own names. */
function pickRunOptions(given: Json): Partial<RunOptions> {
  const renamed: [string, string][] = [
    ['secrets', 'secrets'],
    ['required_secrets', 'requiredSecrets'],
    ['inputs', 'inputs'],
    ['collect', 'collect'],
    ['dependencies', 'dependencies'],
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
  if (!Array.isArray(files)) throw wrong(`files: ${formatValue(files)} is not an array`)
  const entries = (files as unknown[]).map((file, index) => fileOf(file, `files[${index}]`))
  const paths = new Set(entries.map(([path]) => path))
  if (paths.size < entries.length) throw wrong('files: two of them have the same path')
  return Object.fromEntries(entries)
}

function fileOf(file: unknown, where: string): [string, { content: Uint8Array; mode?: number }] {
  if (!isObject(file)) throw wrong(`${where}: ${formatValue(file)} is not an object`)
  refuseUnknown(`${where}.`, file, FILE_KEYS)
  const { path, content_base64: content, mode } = file
  if (typeof path !== 'string') throw wrong(`${where}.path: it is not a string`)
  if (typeof content !== 'string' || content.length % 4 !== 0 || !BASE64.test(content)) {
    throw wrong(`${where}.content_base64: it is not base64`)
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

function wrong(message: string): UsageError {
  return new UsageError('invalid_request', message)
}
