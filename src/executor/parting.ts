import type { HarnessFrame } from '../protocol/index.ts'

/** The frame that ends a run. */
export type ScriptDone = Extract<HarnessFrame, { type: 'script_done' }>

/** Why the host stopped listening to a run. Every kind but a clean `done` ends the sandbox too. */
export type Parting =
  /** `clean`: nothing is under way in either direction. */
  | { readonly kind: 'done'; readonly frame: ScriptDone; readonly clean: boolean }
  | { readonly kind: 'closed' }
  | { readonly kind: 'deadline' }
  /** The harness did not confirm a cancellation in time, or nothing had been started yet. */
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'output-limit'; readonly message: string }
  | { readonly kind: 'violation'; readonly message: string }

/** Thrown inside a conversation to leave it at once. */
export class Departure extends Error {
  override readonly name = 'Departure'
  readonly parting: Parting

  constructor(parting: Parting) {
    super(parting.kind)
    this.parting = parting
  }
}

/** The peer does what no harness does: it cannot be trusted any further. */
export class ChannelViolation extends Departure {
  constructor(message: string) {
    super({ kind: 'violation', message: `the sandbox broke the protocol: ${message}` })
  }
}
