import { SandglassError } from '../../../src/errors/index.ts'
import type { ExecutionResult, RunEvent } from '../../../src/executor/index.ts'
import type { RunOptions } from '../../../src/options/index.ts'
import type { Sandglass } from '../../../src/sandglass.ts'

/** The result of one call of `run`, or the error that it threw. */
export interface Answer {
  readonly result: ExecutionResult | null
  /** The error of the call; null when it returned a result. */
  readonly thrown: { readonly code: string; readonly message: string } | null
  /** The kind of error in the terms of the cases: the code of a thrown error, the kind of a failed run, or null. */
  readonly errorKind: string | null
  /** Time from the call to its answer. */
  readonly wallMs: number
  /** The same without the wait for a sandbox, if one was had. */
  readonly runMs: number
  /** Time from the final result to the answer: kill, wipe and collection. */
  readonly afterResultMs: number | null
  readonly events: readonly RunEvent[]
}

/** Runs scripts on a Sandglass in this process or in another one. */
export interface Runner {
  run(script: string, options: RunOptions): Promise<Answer>
  close(): Promise<void>
}

/** A runner for a Sandglass in this process. */
export function runnerOf(sandglass: Sandglass): Runner {
  return { run: (script, options) => answerOf(sandglass, script, options), close: () => sandglass.close() }
}

/** Runs one script and records everything that the caller can see. */
export async function answerOf(sandglass: Sandglass, script: string, options: RunOptions): Promise<Answer> {
  const events: RunEvent[] = []
  let resultAt: number | null = null
  const called = performance.now()
  let started = called
  const onEvent = (event: RunEvent): unknown => {
    if (event.type === 'started') started = performance.now()
    if (event.type === 'final_result') resultAt = performance.now()
    events.push(event)
    return options.onEvent?.(event)
  }
  const { result, thrown } = await catchError(sandglass.run(script, { ...options, onEvent }))
  const ended = performance.now()
  return {
    result,
    thrown,
    errorKind: result === null ? (thrown?.code ?? null) : result.errorKind,
    wallMs: ended - called,
    runMs: ended - started,
    afterResultMs: resultAt === null ? null : ended - resultAt,
    events,
  }
}

async function catchError(running: Promise<ExecutionResult>): Promise<Pick<Answer, 'result' | 'thrown'>> {
  try {
    return { result: await running, thrown: null }
  } catch (error) {
    if (error instanceof SandglassError) return { result: null, thrown: { code: error.code, message: error.message } }
    throw error
  }
}

/** Describes an answer in one line, for messages. */
export function describeAnswer({ result, thrown, wallMs }: Answer): string {
  if (result === null) return `threw ${thrown?.code}: ${thrown?.message} after ${Math.round(wallMs)} ms`
  const data = JSON.stringify(result.finalData)?.slice(0, 300)
  return `${result.status} (${result.errorKind}) ${data} ${result.error?.slice(0, 300) ?? ''} after ${Math.round(wallMs)} ms`
}
