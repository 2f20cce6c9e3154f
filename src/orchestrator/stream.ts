import type { JournalEvent } from '../journal/index.ts'
import type { Job } from './job.ts'
import type { ToolExecutionResult } from './result.ts'
import { solve } from './solve.ts'

/** The events of a task: those of its journal as they are stored, then its result. */
export type SolveEvent<T = unknown> =
  | { readonly type: 'event'; readonly event: JournalEvent }
  | { readonly type: 'result'; readonly result: ToolExecutionResult<T> }

/** Solves a job and yields its events. Leaving the loop cancels the job and waits until it has settled. */
export async function* streamSolve<T>(job: Job<T>): AsyncGenerator<SolveEvent<T>, void, void> {
  const left = new AbortController()
  const waiting: JournalEvent[] = []
  let news = Promise.withResolvers<void>()
  let isOver = false
  const running = solve({
    ...job,
    signal: job.signal === undefined ? left.signal : AbortSignal.any([job.signal, left.signal]),
    onEvent: (event) => {
      waiting.push(event)
      news.resolve()
      return job.onEvent?.(event)
    },
  }).finally(() => {
    isOver = true
    news.resolve()
  })
  // It is awaited below; until then a failure must not count as unhandled.
  running.catch(() => undefined)
  try {
    while (!isOver || waiting.length > 0) {
      if (waiting.length === 0) await news.promise
      news = Promise.withResolvers<void>()
      for (const event of waiting.splice(0)) yield { type: 'event', event }
    }
    yield { type: 'result', result: await running }
  } finally {
    left.abort()
    await running.catch(() => undefined)
  }
}
