import { Worker } from 'node:worker_threads'

/** A question about data of an untrusted peer. The thread may take long over it, or run out of memory. */
export interface Question {
  /** The module that exports `answer(input)`; see {@link siblingModule}. */
  readonly module: URL
  /** Makes the input of `answer`: texts and plain data. Called when its turn comes, so that few inputs wait in memory. */
  readonly input: () => unknown
  /** The size of the input. The thread may use 16 more bytes of memory for each of these bytes. */
  readonly inputBytes: number
  /** The maximum time for the answer, in milliseconds. */
  readonly deadlineMs: number
  readonly requester?: Requester | undefined
}

/** The source of questions. Requesters take turns, so that one with many questions delays another by one of them. */
export interface Requester {
  /** True if it needs no answer any more: its questions are not asked. */
  readonly isOver: boolean
}

/** The end of a question. Only an answer says anything about the data. */
export type Judgement =
  | { readonly kind: 'answer'; readonly text: string }
  /** No answer within the deadline. */
  | { readonly kind: 'timed-out' }
  /** No turn: other slow questions took all the time. */
  | { readonly kind: 'busy' }
  | { readonly kind: 'out-of-memory' }
  /** The module or the thread failed. */
  | { readonly kind: 'failed'; readonly text: string }

/** The most characters of an answer; a longer one is cut. The host decodes it on its own thread. */
export const MAX_ANSWER_CHARS = 4000

/** A question, as the thread gets it. */
export interface ThreadRequest {
  readonly module: string
  readonly input: unknown
}

/** A message from the thread. */
export type ThreadMessage = { readonly kind: 'started' } | Extract<Judgement, { readonly text: string }>

interface Waiting {
  readonly question: Question
  readonly settle: (judgement: Judgement) => void
  readonly askedAt: number
  /** True if the first try was too short. */
  readonly isSlow: boolean
}

const MiB = 1024 * 1024
const HEAP_MB = 48
const HEAP_BYTES_PER_BYTE = 16
/** The time for the thread to start and to import the module. */
const START_MS = 10_000
/** The deadline of the first try of a question: most answers take a few milliseconds. */
const FIRST_TRY_MS = 200
/** The time that new questions may take in vain before a slow one has its turn. */
const MAX_FIRST_TRIES_MS = 1000
/** The maximum time from a slow question to its second try. */
const MAX_SLOW_WAIT_MS = 3000
/** A thread without work ends after this time. */
const IDLE_MS = 10_000

/** Questions whose requesters take turns. */
class Turns {
  readonly #lists = new Map<Requester | undefined, Waiting[]>()

  add(waiting: Waiting): void {
    const { requester } = waiting.question
    const list = this.#lists.get(requester)
    if (list === undefined) this.#lists.set(requester, [waiting])
    else list.push(waiting)
  }

  take(): Waiting | undefined {
    const [first] = this.#lists
    if (first === undefined) return undefined
    const [requester, list] = first
    const next = list.shift()
    this.#lists.delete(requester)
    if (list.length > 0) this.#lists.set(requester, list)
    return next
  }
}

/**
 * One thread at a time answers questions. One that overruns its deadline is killed; the next question starts another. Every
 * question is tried for a short time first, so that those that need longer delay the others little.
 */
class JudgeThread {
  readonly #new = new Turns()
  readonly #slow = new Turns()
  /** The time that first tries took in vain since a slow question had its turn. */
  #triedMs = 0
  #busy = false
  #worker: Worker | undefined
  #heapMb = 0
  #idle: NodeJS.Timeout | undefined
  #onMessage: ((message: ThreadMessage | Judgement) => void) | undefined

  /** Never rejects. */
  ask(question: Question): Promise<Judgement> {
    const { promise, resolve } = Promise.withResolvers<Judgement>()
    this.#new.add({ question, settle: resolve, askedAt: performance.now(), isSlow: false })
    if (!this.#busy) void this.#work()
    return promise
  }

  async #work(): Promise<void> {
    this.#busy = true
    clearTimeout(this.#idle)
    for (let next = this.#takeNext(); next !== undefined; next = this.#takeNext()) {
      const judgement = await this.#judge(next)
      if (judgement === undefined) this.#slow.add({ ...next, isSlow: true })
      else next.settle(judgement)
    }
    this.#busy = false
    this.#worker?.unref()
    this.#idle = setTimeout(() => this.#end(), IDLE_MS).unref()
  }

  #takeNext(): Waiting | undefined {
    if (this.#triedMs < MAX_FIRST_TRIES_MS) {
      const next = this.#new.take()
      if (next !== undefined) return next
    }
    this.#triedMs = 0
    return this.#slow.take() ?? this.#new.take()
  }

  /** Undefined after a first try that was too short. */
  async #judge({ question, askedAt, isSlow }: Waiting): Promise<Judgement | undefined> {
    const { requester, deadlineMs } = question
    if (requester?.isOver === true) return { kind: 'timed-out' }
    const started = performance.now()
    if (isSlow) return started - askedAt > MAX_SLOW_WAIT_MS ? { kind: 'busy' } : this.#answer(question, deadlineMs)
    const judgement = await this.#answer(question, Math.min(deadlineMs, FIRST_TRY_MS))
    if (judgement.kind !== 'timed-out' || deadlineMs <= FIRST_TRY_MS) return judgement
    this.#triedMs += performance.now() - started
    return undefined
  }

  async #answer({ module, input, inputBytes }: Question, deadlineMs: number): Promise<Judgement> {
    const { promise, resolve } = Promise.withResolvers<Judgement>()
    let timer: NodeJS.Timeout | undefined
    const allow = (ms: number, otherwise: Judgement): void => {
      clearTimeout(timer)
      timer = setTimeout(() => resolve(otherwise), ms)
    }
    try {
      const worker = this.#workerWith(HEAP_MB + Math.ceil((inputBytes * HEAP_BYTES_PER_BYTE) / MiB))
      worker.ref()
      this.#onMessage = (message) =>
        message.kind === 'started' ? allow(deadlineMs, { kind: 'timed-out' }) : resolve(message)
      allow(START_MS, { kind: 'failed', text: `the thread was not ready within ${START_MS} ms` })
      worker.postMessage({ module: module.href, input: input() } satisfies ThreadRequest)
    } catch (error) {
      resolve({ kind: 'failed', text: String(error) })
    }
    const judgement = await promise
    clearTimeout(timer)
    this.#onMessage = undefined
    if (judgement.kind !== 'answer') this.#end()
    return judgement
  }

  /** The running thread, or a new one if that has less memory than this question may need. */
  #workerWith(heapMb: number): Worker {
    if (this.#worker !== undefined && this.#heapMb >= heapMb) return this.#worker
    this.#end()
    this.#heapMb = heapMb
    const worker = new Worker(siblingModule(import.meta.url, 'worker'), {
      name: 'sandglass-judge',
      // Nothing of the host's environment or flags is needed there.
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: 8, stackSizeMb: 4 },
    })
    const tell = (message: ThreadMessage | Judgement): void => {
      if (this.#worker === worker) this.#onMessage?.(message)
    }
    worker.on('message', tell)
    worker.on('error', (error) => tell(judgementOf(error)))
    worker.on('exit', () => {
      tell({ kind: 'failed', text: 'the thread ended' })
      // It may end while nobody asks: the next question must not wait for it.
      if (this.#worker === worker) this.#worker = undefined
    })
    return (this.#worker = worker)
  }

  #end(): void {
    const worker = this.#worker
    this.#worker = undefined
    void worker?.terminate()
  }
}

const shared = new JudgeThread()

/**
 * Asks the judge's thread, which the whole process shares. The host's own thread continues meanwhile; a question costs it only
 * the input, which is made and copied once.
 */
export function askThread(question: Question): Promise<Judgement> {
  return shared.ask(question)
}

/** The module of this name beside another one, in the sources and in the built package. */
export function siblingModule(url: string, name: string): URL {
  return new URL(url.replace(/[^/]*\.(\w+)$/, `${name}.$1`))
}

function judgementOf(error: unknown): Judgement {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ERR_WORKER_OUT_OF_MEMORY' ? { kind: 'out-of-memory' } : { kind: 'failed', text: String(error) }
}
