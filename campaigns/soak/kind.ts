import { isDeepStrictEqual } from 'node:util'
import type { MachineEngine } from '../../test/support/walls.ts'
import type { ErrorKind, ExecutionResult, ExecutionStatus, Sandglass } from '../../src/index.ts'
import type { SandboxCapabilities } from '../../src/engine.ts'
import type { Random } from '../../test/support/random.ts'

/** The means of a run of the soak. */
export interface RunContext {
  readonly sg: Sandglass
  readonly engine: MachineEngine
  /** Sends SIGKILL to PID 1 of a sandbox, or to the Pyodide instance, which has no broker. */
  readonly killSandbox: (sandboxId: string) => void
}

/** One kind of run with its expected outcome. */
export interface Kind {
  readonly name: string
  /** Relative frequency. */
  readonly weight: number
  readonly needs?: 'processes' | 'threads' | 'workspaces' | 'sessions'
  /** Resolves with a description of an unexpected outcome; undefined when all is as expected. */
  run(context: RunContext, random: Random): Promise<string | undefined>
}

/** Returns true when an engine has the capabilities that a kind needs. */
export function canRun({ needs }: Kind, capabilities: SandboxCapabilities): boolean {
  if (needs === 'sessions') return capabilities.sessions === 'checkpoints'
  return needs === undefined || capabilities[needs] === true
}

/** The expected status, error kind and data of a result. */
export interface Expected {
  readonly status: ExecutionStatus
  readonly errorKind: ErrorKind | null
  readonly data?: unknown
}

/** Describes how a result differs; undefined when it is as expected. */
export function difference(result: ExecutionResult, { status, errorKind, data = null }: Expected): string | undefined {
  const found = [result.status, result.errorKind, result.finalData]
  const expected = [status, errorKind, data]
  if (isDeepStrictEqual(found, expected)) return undefined
  const said = [result.error, result.ending.message].filter(Boolean).join('; ')
  return `${short(found)} instead of ${short(expected)}: ${short(said)}, ending ${short(result.ending)}`
}

/** The expected outcome of a script that completes with this data. */
export function completedWith(data: unknown): Expected {
  return { status: 'completed', errorKind: null, data }
}

/** Formats a value in at most 300 characters. */
export function short(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 300)
}
