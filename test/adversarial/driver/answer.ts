import { SandglassError } from '../../../src/errors/index.ts'
import type { ExecutionResult, RunEvent } from '../../../src/executor/index.ts'
import type { RunOptions } from '../../../src/options.ts'
import type { Sandglass } from '../../../src/sandglass.ts'

/** What one call of `run` came to. */
export interface Answer {
  readonly result: ExecutionResult | null
  /** What the call threw. */
  readonly thrown: { readonly code: string; readonly message: string } | null
  /** The vocabulary of the cases: a refused request is `invalid_request`, success is null. */
  readonly errorKind: string | null
  /** From the call to its answer. */
  readonly wallMs: number
  /** From the final result to the answer: kill, wipe and collection. */
  readonly afterResultMs: number | null
  readonly events: readonly RunEvent[]
}

/** Something that runs scripts: a Sandglass of this process, or of another one. */
export interface Runner {
  run(script: string, options: RunOptions): Promise<Answer>
  close(): Promise<void>
}

/** Runs scripts on a Sandglass of this process. */
export function runnerOf(sandglass: Sandglass): Runner {
  return { run: (script, options) => answerOf(sandglass, script, options), close: () => sandglass.close() }
}

/** Runs one script and keeps everything that a caller could see of it. */
export async function answerOf(sandglass: Sandglass, script: string, options: RunOptions): Promise<Answer> {
  const events: RunEvent[] = []
  let resultAt: number | null = null
  const onEvent = (event: RunEvent): unknown => {
    if (event.type === 'final_result') resultAt = performance.now()
    events.push(event)
    return options.onEvent?.(event)
  }
  const started = performance.now()
  const { result, thrown } = await settled(sandglass.run(script, { ...options, onEvent }))
  const ended = performance.now()
  return {
    result,
    thrown,
    errorKind: result === null ? (thrown?.code ?? null) : result.errorKind,
    wallMs: ended - started,
    afterResultMs: resultAt === null ? null : ended - resultAt,
    events,
  }
}

async function settled(running: Promise<ExecutionResult>): Promise<Pick<Answer, 'result' | 'thrown'>> {
  try {
    return { result: await running, thrown: null }
  } catch (error) {
    if (error instanceof SandglassError) return { result: null, thrown: { code: error.code, message: error.message } }
    throw error
  }
}

/** One line about an answer, for messages. */
export function shown({ result, thrown, wallMs }: Answer): string {
  if (result === null) return `threw ${thrown?.code}: ${thrown?.message} after ${Math.round(wallMs)} ms`
  const data = JSON.stringify(result.finalData)?.slice(0, 300)
  return `${result.status} (${result.errorKind}) ${data} ${result.error?.slice(0, 300) ?? ''} after ${Math.round(wallMs)} ms`
}
