import { constants } from 'node:os'

/** Makes signals end this process normally, so that its exit handlers run. */
export function exitOnSignals(): void {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(name, () => process.exit(128 + constants.signals[name]))
}
