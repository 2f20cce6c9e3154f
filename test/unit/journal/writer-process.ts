import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach } from 'vitest'

const WRITER = fileURLToPath(new URL('writer.main.ts', import.meta.url))

/** A process that writes a run into a store on command. */
class Writer {
  readonly #child: ChildProcess
  #said = ''

  constructor(...args: readonly string[]) {
    this.#child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', WRITER, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#child.stdout?.on('data', (chunk: Buffer) => {
      this.#said += chunk.toString()
    })
  }

  async said(word: string): Promise<void> {
    while (!this.#said.includes(word)) {
      if (this.#child.exitCode !== null) throw new Error(`the writer ended with ${this.#child.exitCode}`)
      await Promise.race([once(this.#child.stdout ?? this.#child, 'data'), once(this.#child, 'exit')])
    }
  }

  begin(): void {
    this.#child.stdin?.write('go\n')
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
  }

  async end(): Promise<number | null> {
    if (this.#child.exitCode === null) await once(this.#child, 'exit')
    return this.#child.exitCode
  }
}

/** Starts writers with the arguments of `writer.main.ts`; those that still run after a test are killed. */
export function startsWriters(): (...args: readonly string[]) => Writer {
  const started: Writer[] = []
  afterEach(async () => {
    await Promise.all(started.splice(0).map((writer) => writer.kill()))
  })
  return (...args) => {
    const writer = new Writer(...args)
    started.push(writer)
    return writer
  }
}
