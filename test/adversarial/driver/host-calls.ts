import type { RunOptions } from '../../../src/options.ts'
import type { SandboxReport } from '../../../src/sandbox/index.ts'
import type { Answer } from './answer.ts'
import type { OpenOptions } from './engine.ts'

/** A call from a test to a host process of its own; `number` pairs it with its answer. */
export type HostCall = { readonly number: number } & (
  | { readonly call: 'open'; readonly options: OpenOptions }
  | { readonly call: 'run'; readonly script: string; readonly options: RunOptions }
  | { readonly call: 'report' }
  /** Resident memory in bytes, once what is not needed is given back. */
  | { readonly call: 'memory' }
  | { readonly call: 'close' }
)

/** How a call was answered. */
export type HostAnswer = { readonly number: number } & (
  | { readonly value: Answer | SandboxReport | number | null }
  | { readonly thrown: { readonly code: string; readonly message: string } }
)
