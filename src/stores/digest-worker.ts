import { createHash } from 'node:crypto'
import { type MessagePort, parentPort } from 'node:worker_threads'
import type { Filled } from './digest-thread.ts'

/* The program of the thread that hashes. Each content has a port of its own; the end of the port drops its state. */
parentPort?.on('message', (port: MessagePort) => {
  const hash = createHash('sha256')
  port.on('message', ({ buffer, length, isLast }: Filled) => {
    hash.update(new Uint8Array(buffer, 0, length))
    if (isLast) port.postMessage(hash.digest('hex'))
    else port.postMessage(buffer, [buffer])
  })
})
parentPort?.postMessage('ready')
