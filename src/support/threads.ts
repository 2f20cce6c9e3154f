import type { Worker } from 'node:worker_threads'

/** The time for a thread to load its module, in milliseconds. */
const START_MS = 10_000

/**
 * The module of this name in the directory of another one, in the sources and in the built package. A bundle has no such module, so a
 * thread is not found; the address of the bundle itself would run the program of the user.
 */
export function siblingModule(url: string, name: string): URL {
  const [file = ''] = url.split(/[?#]/)
  return new URL(file.replace(/[^/]*?(\.\w+)?$/, `${name}$1`))
}

/** True at the first message of a thread; false if it fails or ends before, or says nothing for 10 s. Never rejects. */
export function hasStarted(worker: Worker): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const deadline = setTimeout(() => resolve(false), START_MS)
  worker.once('message', () => resolve(true))
  worker.on('error', () => resolve(false))
  worker.on('exit', () => resolve(false))
  return promise.finally(() => clearTimeout(deadline))
}
