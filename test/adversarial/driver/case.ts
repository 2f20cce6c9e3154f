import { readFileSync } from 'node:fs'

/** One acceptance case as it stands in `cases.json`; the fields keep their names there. */
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

/** What must hold after a case: each key, and each name of `host`, is evaluated by somebody or the case fails. */
export type Check = Readonly<Record<string, unknown>>

/** Limits in the words of the cases. */
export type CaseLimits = Readonly<Record<string, number>>

/** A case that this version cannot run, and what has to be there first. */
export interface LaterCase {
  readonly id: string
  readonly waits_for: string
}

/** The groups that run on any engine that runs plain scripts. */
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

/** Every case. */
export function readCases(): AcceptanceCase[] {
  return readJson('../cases.json') as AcceptanceCase[]
}

/** The cases that wait. */
export function readLater(): LaterCase[] {
  return readJson('../later.json') as LaterCase[]
}

/** `check` with each name of `host` as a key of its own. */
export function keysOf(check: Check): string[] {
  return Object.entries(check).flatMap(([key, value]) =>
    key === 'host' ? (value as string[]).map((name) => `host.${name}`) : [key],
  )
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
}
