import { Worker } from 'node:worker_threads'

/** Ends the process when one case takes too long, even if the case blocks the thread. */
export interface Watchdog extends Disposable {
  /** Starts the time limit of a case. */
  begin(number: number): void
}

/** The index in the shared memory of the number of the present case. */
export const CASE_CELL = 0
/** The index of the number of cases that have begun. While it does not change, the present case runs. */
export const BEAT_CELL = 1

/**
 * Starts a watchdog.
 * @param side the side whose cases are watched; the watchdog names it in the command that repeats a case.
 * @param boundMs the time limit of one case.
 */
export function watch(seed: number, side: string, boundMs: number): Watchdog {
  const cells = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT))
  const workerData = { cells, seed, side, boundMs }
  const worker = new Worker(new URL('watchdog.main.ts', import.meta.url), { workerData })
  worker.unref()
  return {
    begin(number) {
      Atomics.store(cells, CASE_CELL, number)
      Atomics.add(cells, BEAT_CELL, 1)
    },
    [Symbol.dispose]() {
      void worker.terminate()
    },
  }
}
