/** The scripts of the light load. */
export type Script = 'short' | 'compute' | 'tools' | 'grow'

/** A call from the driver to the host process; `number` pairs it with its answers. */
export type HostCall = { readonly number: number } & (
  | { readonly call: 'open' }
  | { readonly call: 'run'; readonly script: Script; readonly seconds: number; readonly deadlineSec: number }
  /** A task with a journal in this file. */
  | { readonly call: 'solve'; readonly journal: string }
  /** Gives a run up. */
  | { readonly call: 'abort'; readonly run: number }
  /** Takes memory until there is no more. */
  | { readonly call: 'grow' }
  /** Waits until two sandboxes wait for runs. */
  | { readonly call: 'rest' }
  /** Says what the wall clock shows. */
  | { readonly call: 'clock' }
  | { readonly call: 'close' }
)

/** How something that was asked for ended. */
export interface Outcome {
  /** `completed`, `timed-out/timeout: CAUSE: WORDS`, `threw no_space: WORDS`, `host gone`. */
  readonly said: string
  /** The sandbox that served; empty when there was none. */
  readonly sandbox: string
}

/** What the host process tells: that a script has begun, and how each call ended. */
export type HostAnswer =
  | { readonly number: number; readonly begun: string }
  | { readonly number: number; readonly outcome: Outcome }
