import type { Duplex } from 'node:stream'
import { SandglassError } from '../errors/index.ts'
import { unreachable } from '../executor/index.ts'
import type { Sandbox } from '../sandbox/index.ts'
import { beginSpan, type SpanAttributes, traceSpan } from '../telemetry/index.ts'
import { lowerCpuLimit } from './cpu-share.ts'
import { dial } from './dial.ts'
import { checkExec, exec, type ExecResult } from './exec.ts'
import { unavailableError } from './failures.ts'
import type { Link } from './link.ts'
import type { Neighbours } from './neighbours.ts'
import { checkStart, type Program, start } from './program.ts'
import type { CheckedProgram, ExecOptions, ProgramOptions, StartOptions } from './program-options.ts'

/** The workspace in which programs run. */
interface ProgramsContext {
  readonly sandbox: Sandbox
  readonly neighbours: Neighbours
  /** Names it in spans. */
  readonly execId: string
  /** The timeout of programs that `exec` runs. */
  readonly timeoutSec: number
  /** The error of calls for programs and connections, if the engine has none. */
  readonly refusal: SandglassError | undefined
  /** @throws SandglassError `workspace_closed`, `sandbox_busy` */
  open(): Link
  /** Returns the end of a synchronisation that a program must wait for; undefined if there is none. */
  blockingSync(): Promise<void> | undefined
}

/** The programs of a workspace, each with its span, and the connections to them. */
export class Programs {
  readonly #context: ProgramsContext

  constructor(context: ProgramsContext) {
    this.#context = context
  }

  async exec(command: string, args: readonly string[], options: ExecOptions): Promise<ExecResult> {
    const { sandbox, timeoutSec } = this.#context
    this.#assertHasPrograms()
    const program = checkExec(command, args, options, timeoutSec)
    if (program.program.frame.tty !== null) this.#assertConcurrent('a terminal', 'use exec without tty')
    const syncing = this.#context.blockingSync()
    if (syncing !== undefined) await syncing
    return traceSpan('workspace.run', this.#attributesOf(program.program), async (found) => {
      const { cpus } = program.program
      const leave = this.#enter(options)
      let release = (): void => {}
      try {
        if (cpus !== undefined) release = await this.#lowerCpus(cpus)
        const result = await exec(sandbox, this.#context.open(), program)
        found.exit_code = result.exitCode
        found.timed_out = result.timedOut
        return result
      } finally {
        release()
        leave()
      }
    })
  }

  async start(command: string, args: readonly string[], options: StartOptions): Promise<Program> {
    this.#assertHasPrograms()
    const program = checkStart(command, args, options)
    this.#assertConcurrent('start', 'use exec')
    const { cpus } = program.program
    const leave = this.#enter(options)
    let release = (): void => {}
    const attributes = this.#attributesOf(program.program)
    const end = beginSpan('workspace.run', attributes)
    try {
      if (cpus !== undefined) release = await this.#lowerCpus(cpus)
      const started = await start(this.#context.sandbox, this.#context.open(), program)
      const leaveAtEnd = (): void => {
        release()
        leave()
      }
      started.exited.then(leaveAtEnd, leaveAtEnd)
      started.exited.then(({ exitCode, timedOut }) => {
        attributes.exit_code = exitCode
        attributes.timed_out = timedOut
        end()
      }, end)
      return started
    } catch (error) {
      release()
      leave()
      end(error)
      throw error
    }
  }

  dial(port: number): Duplex {
    this.#assertHasPrograms()
    this.#assertConcurrent('dial', 'no program can listen beside a connection')
    return dial(this.#context.open(), port)
  }

  /** @throws SandglassError `websocket_unreachable` if the engine refuses {@link dial}; `workspace_closed`. */
  assertCanDial(): void {
    try {
      this.#assertHasPrograms()
      this.#assertConcurrent('dial', 'no connection can be opened beside a script')
    } catch (error) {
      if (error instanceof SandglassError && error.code === 'activity_unavailable') throw unreachable(error.message)
      throw error
    }
  }

  #enter({ secrets = {}, shareSecrets = false }: ProgramOptions): () => void {
    return this.#context.neighbours.enter(Object.keys(secrets).length > 0, shareSecrets)
  }

  #attributesOf({ frame }: CheckedProgram): SpanAttributes {
    return { exec_id: this.#context.execId, cmd: frame.argv[0] ?? '', cwd: frame.cwd }
  }

  /**
   * Lowers the CPU limit of the whole workspace. The caller calls the result to restore it. @throws SandglassError
   * `limit_not_enforceable`
   */
  async #lowerCpus(cpus: number): Promise<() => void> {
    const link = this.#context.open()
    using _call = link.use()
    const lowered = await lowerCpuLimit(this.#context.sandbox, link, cpus)
    return () => void lowered[Symbol.asyncDispose]().then(undefined, () => undefined)
  }

  /** @throws SandglassError `workspace_closed`, `activity_unavailable` where activities run one at a time. */
  #assertConcurrent(what: string, instead: string): void {
    if (this.#context.open().isSerial) throw unavailableError(this.#context.sandbox.info.engine, what, instead)
  }

  /** @throws SandglassError `workspace_closed`, `activity_unavailable` where the engine has no programs. */
  #assertHasPrograms(): void {
    this.#context.open()
    if (this.#context.refusal !== undefined) throw this.#context.refusal
  }
}
