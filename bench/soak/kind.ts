import { isDeepStrictEqual } from 'node:util'
import type { ErrorKind, ExecutionResult, ExecutionStatus, Sandglass, SandboxCapabilities } from '../../src/index.ts'
import type { Random } from '../../test/support/random.ts'

/** What a run of the soak has at hand. */
export interface Bed {
  readonly sg: Sandglass
  readonly engine: EngineName
  /** SIGKILL from the host for what runs the script of this sandbox: its PID 1, or the instance where there is no broker. */
  readonly killSandbox: (sandboxId: string) => void
}

/** Engines that a soak can be asked for. */
export type EngineName = 'local' | 'docker' | 'pyodide'

/** One kind of run, with what must come of it. */
export interface Kind {
  readonly name: string
  /** How often it is chosen beside the others. */
  readonly weight: number
  readonly needs?: 'processes' | 'threads'
  /** Resolves with what was not as expected, in words. */
  run(bed: Bed, random: Random): Promise<string | undefined>
}

/** Whether an engine can run a kind at all. */
export function canRun({ needs }: Kind, capabilities: SandboxCapabilities): boolean {
  return needs === undefined || capabilities[needs]
}

/** What a result must be: status and kind of error, and its data where there is one to expect. */
export interface Expected {
  readonly status: ExecutionStatus
  readonly errorKind: ErrorKind | null
  readonly data?: unknown
}

/** The difference, in words; undefined when there is none. */
export function difference(result: ExecutionResult, { status, errorKind, data = null }: Expected): string | undefined {
  const found = [result.status, result.errorKind, result.finalData]
  const expected = [status, errorKind, data]
  if (isDeepStrictEqual(found, expected)) return undefined
  const said = [result.error, result.ending.message].filter(Boolean).join('; ')
  return `${short(found)} in place of ${short(expected)}: ${short(said)}, ending ${short(result.ending)}`
}

/** What a script that gets through with this data is. */
export function completed(data: unknown): Expected {
  return { status: 'completed', errorKind: null, data }
}

/** A value in at most 300 characters. */
export function short(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 300)
}
