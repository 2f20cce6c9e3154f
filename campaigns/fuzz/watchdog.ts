import { Worker } from 'node:worker_threads'

/** Ends the process when one case takes too long, even if the case blocks the thread. */
export interface Watchdog extends Disposable {
  /** A case begins. */
  begin(number: number): void
}

/** The place in the shared memory for the number of the case. */
export const CASE_CELL = 0
/** The place for the number of cases that began: a case is stuck while it does not change. */
export const BEAT_CELL = 1

/** @param side the side whose cases are watched, for the command that repeats one. */
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
