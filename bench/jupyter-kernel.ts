import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'

/** A Jupyter kernel, with a client that measures its cells. */
export class JupyterKernel implements AsyncDisposable {
  readonly #client: ChildProcessByStdio<Writable, Readable, null>
  readonly #lines: AsyncIterator<string>

  /** `python` is an interpreter that has `jupyter_client` and `ipykernel`. */
  constructor(python: string) {
    const script = join(import.meta.dirname, 'jupyter_cells.py')
    this.#client = spawn(python, [script], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#lines = createInterface(this.#client.stdout)[Symbol.asyncIterator]()
  }

  /** Runs one cell. Returns the milliseconds that its client waited. */
  async measure(): Promise<number> {
    this.#client.stdin.write('\n')
    const line = await this.#lines.next()
    if (line.done === true) throw new Error('the client of the Jupyter kernel has ended')
    return Number(line.value)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = this.#client.exitCode === null ? once(this.#client, 'exit') : undefined
    this.#client.stdin.end()
    await exited
  }
}
