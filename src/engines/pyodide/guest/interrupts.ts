import { Socket } from 'node:net'
import { workerData } from 'node:worker_threads'
import { SHARED } from './shared.ts'
import { FDS } from './wire.ts'

/* A separate thread of the instance of a session. The host sends the number of a cell, to interrupt it while it blocks the main
 * thread. The answer, one byte, confirms that Python can see the number: then the host wakes a cell that waits for its tools. */
const NUMBER_BYTES = 4
const { shared } = workerData as { shared: Int32Array }
let rest = Buffer.alloc(0)

const line = new Socket({ fd: FDS.interrupts, readable: true, writable: true })
line.on('error', () => undefined) // the host is gone, and the process ends with it
line.on('data', (bytes) => {
  rest = Buffer.concat([rest, bytes])
  for (; rest.length >= NUMBER_BYTES; rest = rest.subarray(NUMBER_BYTES)) {
    Atomics.store(shared, SHARED.interrupted, rest.readInt32LE(0))
    Atomics.notify(shared, SHARED.interrupted)
    line.write(Buffer.of(1))
  }
})
