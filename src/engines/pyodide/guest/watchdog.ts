import { writeSync } from 'node:fs'
import { workerData } from 'node:worker_threads'
import { FDS } from './wire.ts'

/* A thread of its own: it ends the process when it has outgrown its memory or when the host is gone (a box ends with its
 * host by itself), also while a script holds the main thread. It rests while nothing runs: an instance that waits for its
 * script ends with its input. */
const LOOK_MS = 50
const { maxRssBytes, watching } = workerData as { maxRssBytes: number; watching: Int32Array }
const pause = new Int32Array(new SharedArrayBuffer(4))
const parent = process.ppid

for (;;) {
  Atomics.wait(watching, 0, 0)
  Atomics.wait(pause, 0, 0, LOOK_MS)
  if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL')
  if (process.memoryUsage.rss() <= maxRssBytes) continue
  writeSync(FDS.control, '\n{"type":"out-of-memory"}\n')
  process.kill(process.pid, 'SIGKILL')
}
