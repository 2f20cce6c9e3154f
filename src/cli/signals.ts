import { SandglassError } from '../errors/index.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** The early end of a command. */
export interface Interruption {
  /** Its reason is a SandglassError `aborted`. */
  readonly signal: AbortSignal
  /** The signal that came first, if one came. */
  readonly received: () => NodeJS.Signals | undefined
  /** Call it when the reader of stdout has left. */
  readonly readerLeft: () => void
  readonly isStdoutClosed: () => boolean
}

/**
 * Handles the signals that ask a program to end, until the process exits: a second one must not kill the process while
 * it removes its sandboxes, which takes a bounded time.
 */
export function interruption(): Interruption {
  const controller = new AbortController()
  let received: NodeJS.Signals | undefined
  let left = false
  for (const name of SIGNALS) {
    process.on(name, () => {
      received ??= name
      controller.abort(new SandglassError('aborted', `cancelled by ${name === 'SIGINT' ? 'Ctrl-C' : name}`))
    })
  }
  return {
    signal: controller.signal,
    received: () => received,
    readerLeft() {
      left = true
      controller.abort(new SandglassError('aborted', 'cancelled, because the reader of the output has left'))
    },
    isStdoutClosed: () => left,
  }
}
