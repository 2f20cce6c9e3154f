import { setImmediate as nextTurn } from 'node:timers/promises'

/** Runs all pending work that needs no timer. */
export async function quiet(): Promise<void> {
  for (let turn = 0; turn < 30; turn += 1) await Promise.resolve()
}

/** A promise whose state can be read. */
export interface Watched<T> {
  state: 'pending' | 'fulfilled' | 'rejected'
  value: T | undefined
  error: unknown
}

/** Watches a promise; a rejection counts as handled. */
export function watch<T>(promise: Promise<T>): Watched<T> {
  const watched: Watched<T> = { state: 'pending', value: undefined, error: undefined }
  promise.then(
    (value) => {
      watched.state = 'fulfilled'
      watched.value = value
    },
    (error: unknown) => {
      watched.state = 'rejected'
      watched.error = error
    },
  )
  return watched
}

/** Collects garbage in each turn of the event loop until a condition is true. */
export async function collectUntil(gc: () => void, isTrue: () => boolean): Promise<boolean> {
  for (let turn = 0; turn < 500 && !isTrue(); turn += 1) {
    gc()
    await nextTurn()
  }
  return isTrue()
}
