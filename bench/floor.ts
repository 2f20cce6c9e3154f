import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** A warm interpreter, with what the zygote imports, that forks on demand. */
export interface Floor {
  /** Fork, one byte through a pipe, wait: milliseconds, taken inside. */
  measure(): Promise<number>
  close(): void
}

/** Starts it with the Python that the sandboxes use. */
export function startFloor(python: string): Floor {
  const child = spawn(python, ['-I', '-S', '-B', '-X', 'utf8', fileURLToPath(new URL('floor.py', import.meta.url))], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    async measure() {
      child.stdin.write('x')
      return Number((await lines.next()).value) / 1000
    },
    close: () => child.stdin.end(),
  }
}
