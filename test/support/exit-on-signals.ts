import { constants } from 'node:os'

/** Ends this process in order when it is told to end: what is to be given back at its exit is given back. */
export function exitOnSignals(): void {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(name, () => process.exit(128 + constants.signals[name]))
}
