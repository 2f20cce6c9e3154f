import { readFileSync } from 'node:fs'

/** One acceptance case, with the field names of `cases.json`. */
export interface AcceptanceCase {
  readonly id: string
  readonly group: string
  readonly title: string
  readonly kind: string
  readonly mode: string
  readonly script_or_input: unknown
  readonly expected: string
  readonly check: Check
  readonly setup?: string
  readonly timeout_s?: number
  readonly limits?: CaseLimits
  readonly needs?: readonly string[]
  readonly followup?: { readonly script: string; readonly check: Check }
}

/** Conditions after a case. A key or a name in `host` that is not evaluated fails the case. */
export type Check = Readonly<Record<string, unknown>>

/** Limits with the names of the cases, such as `memory_mb`. */
export type CaseLimits = Readonly<Record<string, number>>

/** A case that this version cannot run yet, and the feature that it waits for. */
export interface LaterCase {
  readonly id: string
  readonly waits_for: string
}

/** The groups of cases for any engine that runs plain scripts. */
export const GROUPS: readonly string[] = [
  'benign-control',
  'ast-validator',
  'tool-bridge',
  'harness-tampering',
  'timeouts',
  'resource-exhaustion',
  'protocol',
  'isolation-and-processes',
  'secrets',
  'files-and-artifacts',
  'network',
  'pool',
  'host-faults',
  'wasm-pyodide',
  'parsing-and-prompts',
]

/** Reads all cases. */
export function readCases(): AcceptanceCase[] {
  return readJson('../cases.json') as AcceptanceCase[]
}

/** Reads the cases that this version cannot run yet. */
export function readLaterCases(): LaterCase[] {
  return readJson('../later.json') as LaterCase[]
}

/** The keys of `check`, with each name of `host` as the key `host.NAME`. */
export function keysOf(check: Check): string[] {
  return Object.entries(check).flatMap(([key, value]) =>
    key === 'host' ? (value as string[]).map((name) => `host.${name}`) : [key],
  )
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
}
