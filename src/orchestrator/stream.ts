import type { JournalEvent } from '../journal/index.ts'
import type { Job } from './job.ts'
import type { ToolExecutionResult } from './result.ts'
import { solve } from './solve.ts'

/** The events of a task: those of its journal as they are stored, the files of `collect` as they arrive, then its result. */
export type SolveEvent<T = unknown> =
  | { readonly type: 'event'; readonly event: JournalEvent }
  /** A file that a script left has arrived. Its content is in the result, unless a later script replaces it. */
  | { readonly type: 'file'; readonly path: string; readonly size: number }
  | { readonly type: 'result'; readonly result: ToolExecutionResult<T> }

/** Solves a job and yields its events. Leaving the loop cancels the job and waits until it has settled. */
export async function* streamSolve<T>(job: Job<T>): AsyncGenerator<SolveEvent<T>, void, void> {
  const left = new AbortController()
  const waiting: SolveEvent<T>[] = []
  let news = Promise.withResolvers<void>()
  let isOver = false
  const put = (event: SolveEvent<T>): void => {
    waiting.push(event)
    news.resolve()
  }
  const running = solve({
    ...job,
    signal: job.signal === undefined ? left.signal : AbortSignal.any([job.signal, left.signal]),
    onEvent: (event) => {
      put({ type: 'event', event })
      return job.onEvent?.(event)
    },
    onFile: ({ path, size }) => put({ type: 'file', path, size }),
  }).finally(() => {
    isOver = true
    news.resolve()
  })
  // `running` is awaited below; until then a failure must not count as unhandled.
  running.catch(() => undefined)
  try {
    while (!isOver || waiting.length > 0) {
      if (waiting.length === 0) await news.promise
      news = Promise.withResolvers<void>()
      yield* waiting.splice(0)
    }
    yield { type: 'result', result: await running }
  } finally {
    left.abort()
    await running.catch(() => undefined)
  }
}
