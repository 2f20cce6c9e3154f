import { parentPort } from 'node:worker_threads'
import { type Asked, MAX_ANSWER_CHARS, type Told } from './judge-thread.ts'

/* The program of the judge's thread. It imports the module of a question, which exports `answer`, and says so, because the
 * deadline begins then. */
const tell = (told: Told): void => parentPort?.postMessage(told)

parentPort?.on('message', ({ module, input }: Asked) => {
  void (async () => {
    try {
      const { answer } = (await import(module)) as { answer: (input: unknown) => unknown }
      tell({ kind: 'begun' })
      tell({ kind: 'answer', text: String(await answer(input)).slice(0, MAX_ANSWER_CHARS) })
    } catch (error) {
      tell({ kind: 'failed', text: String(error).slice(0, MAX_ANSWER_CHARS) })
    }
  })()
})
