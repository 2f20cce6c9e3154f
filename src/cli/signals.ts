import { SandglassError } from '../errors/index.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** What ends a command early. */
export interface Interruption {
  /** Its reason is a SandglassError `aborted`. */
  readonly signal: AbortSignal
  /** The signal that came first, if one came. */
  readonly received: () => NodeJS.Signals | undefined
  /** Nobody reads what we write. */
  readonly readerLeft: () => void
  readonly hasReaderLeft: () => boolean
}

/**
 * Takes the signals that ask a program to end. They stay taken to the very end: a second one must not kill us while
 * sandboxes are being ended, which is bounded in time.
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
      controller.abort(new SandglassError('aborted', 'cancelled, because nobody reads the output any more'))
    },
    hasReaderLeft: () => left,
  }
}
