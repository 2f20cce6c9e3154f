/** The thread of watchdog.ts: when a case takes too long, it prints the case and kills the process. */
import { writeSync } from 'node:fs'
import { workerData } from 'node:worker_threads'
import { repeatCommand } from './finding.ts'
import { BEAT_CELL, CASE_CELL } from './watchdog.ts'

const { cells, seed, side, boundMs } = workerData as {
  readonly cells: Int32Array
  readonly seed: number
  readonly side: string
  readonly boundMs: number
}
let beat = Atomics.load(cells, BEAT_CELL)
let since = performance.now()
setInterval(() => {
  const now = Atomics.load(cells, BEAT_CELL)
  if (now !== beat) {
    beat = now
    since = performance.now()
    return
  }
  if (performance.now() - since < boundMs) return
  const number = Atomics.load(cells, CASE_CELL)
  writeSync(
    2,
    `hang: ${side} case ${number} took over ${boundMs} ms\n  repeat it: ${repeatCommand(seed, side, number)}\n`,
  )
  process.kill(process.pid, 'SIGKILL')
}, 250)
