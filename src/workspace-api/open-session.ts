import { setImmediate } from 'node:timers/promises'
import { SandglassError } from '../errors/index.ts'
import { OutputWindow, type Program, type ProgramExit } from '../workspace/index.ts'
import { programStatusExited, programStatusRunning } from './constants.ts'
import type { ProgramLog, ProgramPoll, ProgramSession, ProgramState, RunResult } from './programs-contract.ts'

const MAX_OUTPUT_BYTES = 1024 * 1024

/** A program of a workspace as a session. It counts as ended once all of its output has arrived. */
export class OpenSession implements ProgramSession {
  readonly #program: Program
  readonly #stdout = new OutputWindow(MAX_OUTPUT_BYTES)
  readonly #stderr = new OutputWindow(MAX_OUTPUT_BYTES)
  readonly #ended: Promise<void>
  #exit: ProgramExit | undefined

  constructor(program: Program) {
    this.#program = program
    this.#ended = this.#readOutput()
    // `poll` and `kill` report the error of a lost workspace.
    this.#ended.catch(() => undefined)
  }

  get id(): string {
    return this.#program.id
  }

  async poll(limit?: number): Promise<ProgramPoll> {
    // Let output arrive even if the caller polls without a pause.
    await setImmediate()
    const found = await this.#program.poll(limit === undefined ? {} : { maxBytes: limit })
    if (found.status === 'exited') await this.#ended
    return { ...this.state(), ...textOf(found) }
  }

  log(offset?: number, limit?: number): ProgramLog {
    return textOf(
      this.#program.log({
        ...(offset === undefined ? {} : { offset }),
        ...(limit === undefined ? {} : { maxBytes: limit }),
      }),
    )
  }

  async write(data: string, newline: boolean = false): Promise<void> {
    await this.#program.write(data, newline)
  }

  async kill(graceMs?: number): Promise<void> {
    await this.#program.kill(graceMs === undefined ? {} : { graceMs })
    await this.#ended
  }

  async close(): Promise<void> {
    await this.#program.close()
    await this.#ended.catch(() => undefined)
  }

  state(): ProgramState {
    return this.#exit === undefined
      ? { status: programStatusRunning, exitCode: null }
      : { status: programStatusExited, exitCode: this.#exit.exitCode }
  }

  runResult(): RunResult {
    if (this.#exit === undefined)
      throw new SandglassError(
        'invalid_request',
        'the session is still running; call runResult() when its status is exited',
      )
    const { exitCode, durationMs, timedOut } = this.#exit
    return { stdout: this.#stdout.result().text, stderr: this.#stderr.result().text, exitCode, durationMs, timedOut }
  }

  async #readOutput(): Promise<void> {
    for await (const { stream, bytes } of this.#program.output)
      (stream === 'stdout' ? this.#stdout : this.#stderr).push(bytes)
    this.#exit = await this.#program.exited
  }
}

function textOf({ text, offset, nextOffset }: { text: string; offset: number; nextOffset: number }): ProgramLog {
  return { output: text, offset, nextOffset }
}
