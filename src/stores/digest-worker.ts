import { createHash } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import type { Filled, Hashed } from './digest-thread.ts'

/* The program of the hashing thread. Each content has a port of its own; closing the port drops its state. */
parentPort?.on('message', ({ port, memory, bufferBytes }: Hashed) => {
  const hash = createHash('sha256')
  port.on('message', (message: Filled | Uint8Array<ArrayBuffer>) => {
    if (message instanceof Uint8Array) {
      hash.update(message)
      port.postMessage(message, [message.buffer])
      return
    }
    const { buffer, length, isLast } = message
    hash.update(new Uint8Array(memory, buffer * bufferBytes, length))
    port.postMessage(isLast ? hash.digest('hex') : buffer)
  })
})
parentPort?.postMessage('ready')
