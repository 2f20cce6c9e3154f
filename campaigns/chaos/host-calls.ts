/**
 * The scripts of the light load. Two are no scripts: `transfer` sends files into a workspace and reads them back while a program
 * runs there; `sessions` runs cells in several sessions of one workspace.
 */
export type Script = 'short' | 'compute' | 'tools' | 'grow' | 'transfer' | 'sessions'

/** A call from the driver to the host process; `number` links its answers to it. */
export type HostCall = { readonly number: number } & (
  | { readonly call: 'open' }
  | { readonly call: 'run'; readonly script: Script; readonly seconds: number; readonly deadlineSec: number }
  /** A task with a journal in this file. */
  | { readonly call: 'solve'; readonly journal: string }
  /** Cancels a run. */
  | { readonly call: 'abort'; readonly run: number }
  /** Takes memory until the kernel ends the host. */
  | { readonly call: 'grow' }
  /** Waits until two sandboxes are idle. */
  | { readonly call: 'rest' }
  /** Returns the wall clock time. */
  | { readonly call: 'clock' }
  | { readonly call: 'close' }
)

/** The outcome of a call. */
export interface Outcome {
  /** `completed`, `timed-out/timeout: CAUSE: MESSAGE`, `threw no_space: MESSAGE`, `host gone`. */
  readonly said: string
  /** The id of the sandbox of the run; empty when there was none. */
  readonly sandbox: string
}

/** A message from the host process: a script has begun, or a call has ended. */
export type HostAnswer =
  | { readonly number: number; readonly begun: string }
  | { readonly number: number; readonly outcome: Outcome }
