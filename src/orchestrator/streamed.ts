import type { JournalEvent } from '../journal/index.ts'
import type { Job } from './job.ts'
import { solve } from './solve.ts'
import type { SolveEvent } from './solve-event.ts'

/** Works a job off and tells its events; leaving the loop cancels it and waits until it has settled. */
export async function* streamed<T>(job: Job<T>): AsyncGenerator<SolveEvent<T>, void, void> {
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
