import {
  type ExecutionMode,
  type ExecutionResult,
  ScriptExecutor,
  type SandboxRunRequest,
} from '../../../src/executor/index.ts'
import type { ScriptExecutorOptions } from '../../../src/executor/index.ts'
import { replayChannel, type ReplayOptions, type ReplaySandbox, wireLines } from '../../../src/testing/index.ts'

/** The id of the runs in these tests. */
export const ID = 'e1'

type Fields = Readonly<Record<string, unknown>>

/** A frame of the run {@link ID}. */
export function frame(type: string, fields: Fields = {}): Fields {
  return { type, execution_id: ID, ...fields }
}

export const result = (data: unknown): Fields => frame('final_result', { data })
export const log = (message: string): Fields => frame('log', { message })
export const intermediate = (label: string, data: unknown): Fields => frame('intermediate', { label, data })
export const error = (message: string, fields: Fields = {}): Fields =>
  frame('error', { message, traceback: null, kind: 'exception', ...fields })

/** A `script_done` after which the sandbox may serve again; `ending` changes how the script ended. */
export function done(ending: Fields = {}, fields: Fields = {}): Fields {
  return frame('script_done', {
    ending: { cause: 'exit', exit_code: 0, signal: null, by: 'script', ...ending },
    reusable: true,
    use: 3,
    ...fields,
  })
}

/** A sandbox that replays frames, each in a separate chunk. */
export function sandboxOf(frames: readonly unknown[], options: ReplayOptions = {}): ReplaySandbox {
  return replayChannel(
    frames.map((value) => (value instanceof Uint8Array ? value : wireLines(value))),
    options,
  )
}

interface Setup extends ScriptExecutorOptions {
  readonly replay?: ReplayOptions
  readonly request?: Partial<SandboxRunRequest>
}

/** Runs a script in INTERACTIVE mode against replayed frames. */
export async function play(
  frames: readonly unknown[],
  { replay, request, ...options }: Setup = {},
): Promise<{ result: ExecutionResult; sandbox: ReplaySandbox }> {
  const sandbox = sandboxOf(frames, replay)
  const executor = new ScriptExecutor({ mode: 'interactive' satisfies ExecutionMode, ...options })
  const outcome = await executor.run({ sandbox, script: 'pass', executionId: ID, ...request })
  return { result: outcome, sandbox }
}
