import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** A Python that has imported the zygote's modules and forks on request: a lower bound for the time of a process per script. */
export interface Floor {
  /** Returns the milliseconds to fork a child, read one byte from it and wait for its end, as Python measures them. */
  measure(): Promise<number>
  readonly pid: number
  close(): void
}

/**
 * Starts a floor with the Python that the sandboxes use.
 * @param loaded a directory of packages and a module that is loaded from it.
 */
export function startFloor(python: string, loaded: readonly [] | readonly [string, string] = []): Floor {
  const program = fileURLToPath(new URL('floor.py', import.meta.url))
  const child = spawn(python, ['-I', '-S', '-B', '-X', 'utf8', program, ...loaded], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  if (child.pid === undefined) throw new Error(`${python} cannot be started`)
  return {
    pid: child.pid,
    async measure() {
      child.stdin.write('x')
      return Number((await lines.next()).value) / 1000
    },
    close: () => child.stdin.end(),
  }
}
