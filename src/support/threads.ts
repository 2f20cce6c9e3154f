import type { Worker } from 'node:worker_threads'

/** The time for a thread to load its module, in milliseconds. */
const START_MS = 10_000

/**
 * The URL of a module in the directory of another module, in the sources and in the built package. In a bundle the module does not
 * exist, so that a thread fails to start; the URL of the bundle itself would run the user's program.
 */
export function siblingModule(url: string, name: string): URL {
  const [file = ''] = url.split(/[?#]/)
  return new URL(file.replace(/[^/]*?(\.\w+)?$/, `${name}$1`))
}

/** Resolves to true at the first message of a thread; to false if it fails, exits or sends nothing for 10 s. Never rejects. */
export function hasStarted(worker: Worker): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const deadline = setTimeout(() => resolve(false), START_MS)
  worker.once('message', () => resolve(true))
  worker.on('error', () => resolve(false))
  worker.on('exit', () => resolve(false))
  return promise.finally(() => clearTimeout(deadline))
}
