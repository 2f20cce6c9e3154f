import { parentPort } from 'node:worker_threads'
import { type ThreadRequest, MAX_ANSWER_CHARS, type ThreadMessage } from './judge-thread.ts'

/* The program of the judge's thread. It imports the module of a question, which exports `answer`, and says so, because the
 * deadline begins then. */
const tell = (message: ThreadMessage): void => parentPort?.postMessage(message)

parentPort?.on('message', ({ module, input }: ThreadRequest) => {
  void (async () => {
    try {
      const { answer } = (await import(module)) as { answer: (input: unknown) => unknown }
      tell({ kind: 'started' })
      tell({ kind: 'answer', text: String(await answer(input)).slice(0, MAX_ANSWER_CHARS) })
    } catch (error) {
      tell({ kind: 'failed', text: String(error).slice(0, MAX_ANSWER_CHARS) })
    }
  })()
})
