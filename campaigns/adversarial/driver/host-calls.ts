import type { RunOptions } from '../../../src/options/index.ts'
import type { SandboxReport } from '../../../src/sandbox/index.ts'
import type { Answer } from './answer.ts'
import type { OpenOptions } from './engine.ts'

/** A call from a test to its host process; `number` links the answer to the call. */
export type HostCall = { readonly number: number } & (
  | { readonly call: 'open'; readonly options: OpenOptions }
  | { readonly call: 'run'; readonly script: string; readonly options: RunOptions }
  | { readonly call: 'report' }
  /** Resident memory in bytes after garbage collection. */
  | { readonly call: 'memory' }
  | { readonly call: 'close' }
)

/** The answer to a call. */
export type HostAnswer = { readonly number: number } & (
  | { readonly value: Answer | SandboxReport | number | null }
  | { readonly thrown: { readonly code: string; readonly message: string } }
)
