import { writeSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { SHARED } from './shared.ts'
import { FDS } from './wire.ts'

/* A separate thread that ends the process if its memory exceeds the limit, if the host has ended, or if a script that may wait
 * for tools has used up its own time, even while the script blocks the main thread. (Bubblewrap ends with its host by itself.) It
 * sleeps while no script runs: an instance that waits for its script ends with its input. */
const POLL_MS = 50
const { maxRssBytes, shared, origin } = workerData as { maxRssBytes: number; shared: Int32Array; origin: bigint }
const pause = new Int32Array(new SharedArrayBuffer(4))
const parent = process.ppid
parentPort?.postMessage('watching')

for (;;) {
  Atomics.wait(shared, SHARED.on, 0)
  Atomics.wait(pause, 0, 0, POLL_MS)
  if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL')
  if (isPastDeadline()) end('past-deadline')
  if (process.memoryUsage.rss() > maxRssBytes) end('out-of-memory')
}

function isPastDeadline(): boolean {
  const read = (place: number): number => Atomics.load(shared, place)
  const [endsAt, since] = [read(SHARED.endsAt), read(SHARED.waitsSince)]
  if (endsAt === 0) return false
  const now = Number((process.hrtime.bigint() - origin) / 1_000_000n) + 1
  const waited = read(SHARED.waited) + (since === 0 ? 0 : now - since)
  return now > endsAt + Math.min(waited, read(SHARED.maxWait))
}

function end(type: string): void {
  writeSync(FDS.control, `\n{"type":"${type}"}\n`)
  process.kill(process.pid, 'SIGKILL')
}
