import type { HarnessFrame } from '../protocol/index.ts'

/** The frame that ends a run. */
export type ScriptDone = Extract<HarnessFrame, { type: 'script_done' }>

/** Why the host stopped listening to a run. Every kind but a clean `done` ends the sandbox too. */
export type ConversationEnd =
  /** `clean`: no frame is in flight in either direction. */
  | { readonly kind: 'done'; readonly frame: ScriptDone; readonly clean: boolean }
  | { readonly kind: 'closed' }
  | { readonly kind: 'deadline' }
  /** The harness did not confirm a cancellation in time, or nothing had been started yet. */
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'output-limit'; readonly message: string }
  | { readonly kind: 'protocol-error'; readonly message: string }

/** Thrown inside a conversation to leave it at once. */
export class EndConversation extends Error {
  override readonly name = 'EndConversation'
  readonly end: ConversationEnd

  constructor(end: ConversationEnd) {
    super(end.kind)
    this.end = end
  }
}

/** The peer broke the protocol, so it is no longer trusted. */
export class ChannelViolation extends EndConversation {
  constructor(message: string) {
    super({ kind: 'protocol-error', message: `the sandbox broke the protocol: ${message}` })
  }
}
