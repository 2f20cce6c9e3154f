import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { siblingModule } from '../support/index.ts'

/** A question about data of an untrusted peer. Answering may take long or run out of memory. */
export interface Question {
  /** The module that exports `answer(input)`; see {@link siblingModule}. */
  readonly module: URL
  /** Creates the input of `answer`: texts and plain data. Called when the question has its turn, so that few inputs are in memory. */
  readonly input: () => unknown
  /** The approximate memory of the input. The judge may use eight times as much, in addition to its own. */
  readonly inputBytes: number
  /** The maximum time for the answer, in milliseconds. */
  readonly deadlineMs: number
  readonly requester?: Requester | undefined
  /** A text that similar questions share, such as a schema. After a question overran, others of its kind come last. */
  readonly kind?: string | undefined
}

/** The source of questions. Requesters take turns, so that a requester with many questions delays another one by one question only. */
export interface Requester {
  /** True if it no longer needs answers: its questions are dropped. */
  readonly isOver: boolean
}

/** The outcome of a question. Only an answer says anything about the data. */
export type Judgement =
  | { readonly kind: 'answer'; readonly text: string }
  /** No answer within the deadline. */
  | { readonly kind: 'timed-out' }
  /** The question had no turn in time because of other slow questions. */
  | { readonly kind: 'busy' }
  | { readonly kind: 'out-of-memory' }
  /** The module or the process failed. */
  | { readonly kind: 'failed'; readonly text: string }

/** Maximum characters of an answer; a longer answer is truncated, because the host decodes it on its own thread. */
export const MAX_ANSWER_CHARS = 4000

/** A question in the form for the child process. */
export interface JudgeRequest {
  readonly module: string
  readonly input: unknown
  /** The time after which the child interrupts itself, in milliseconds. */
  readonly interruptMs: number
}

/** A message from the child process. */
export type JudgeMessage =
  | { readonly kind: 'started' }
  | { readonly kind: 'interrupted' }
  | Extract<Judgement, { readonly text: string }>

interface Waiting {
  readonly question: Question
  readonly settle: (judgement: Judgement) => void
  readonly askedAt: number
  /** The number of short tries that it overran. */
  shortTries: number
}

const MiB = 1024 * 1024
/** The heap that the modules of a child process take. */
const HEAP_MB = 24
/**
 * Memory per byte of input: six bytes as JSON text, in which a character may be escaped, and two bytes as a value.
 */
const HEAP_BYTES_PER_BYTE = 8
/** The semi-space of the youngest values. A larger one fills with garbage before the first collection. */
const SEMI_SPACE_MB = 1
/** The stack, for deep values. */
const STACK_KB = 3800
const SHELL = '/bin/sh'
/** Prevents a core dump when V8 aborts because its heap is full, and sets a large enough stack even if the host's is smaller. */
const SET_LIMITS = 'ulimit -c 0; ulimit -S -s 8192; exec "$@"'
/** Every child has memory for inputs up to this size. After a larger input it is ended, which frees its memory. */
const MAX_KEPT_BYTES = 4 * MiB
/** The time for the child to start and to import the module. */
const START_MS = 10_000
/** The deadline of the first try of a question: most answers take a few milliseconds. */
const FIRST_TRY_MS = 200
/**
 * The deadlines of the first tries while other questions wait. A try follows the earlier tries of all other questions, so a quick question
 * waits a few milliseconds for each slow one, even of its own kind.
 */
const SHORT_TRIES_MS = [5, 30] as const
/** Reading a larger input takes longer than the first short try. */
const MAX_QUICK_BYTES = 256 * 1024
/** The time after the end of a try after which a child that could not be interrupted is killed. */
const KILL_MS = 200
/** The maximum time from a question to its last try: its run must settle soon after its own end. */
const MAX_WAIT_MS = 3000
/** A child without work ends after this time. */
const IDLE_MS = 10_000
/** Maximum number of overruns of a kind that are counted. */
const MAX_OVERRUNS = 1_000_000
/** Maximum number of kinds of questions for which overruns are counted. */
const MAX_KINDS = 256

/** The kinds of questions that overran recently, and how often. */
class Overruns {
  readonly #counts = new Map<string, number>()

  of({ kind }: Question): number {
    return kind === undefined ? 0 : (this.#counts.get(kind) ?? 0)
  }

  note({ kind }: Question): void {
    if (kind === undefined) return
    if (this.#counts.size >= MAX_KINDS) this.#counts.clear()
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1)
  }

  clear(): void {
    this.#counts.clear()
  }

  forget({ kind }: Question): void {
    if (kind !== undefined) this.#counts.delete(kind)
  }
}

/** Questions whose requesters take turns: those with the fewest tries first, and of these the kinds with the fewest overruns first. */
class Turns {
  readonly #overruns = new Overruns()
  readonly #lists = new Map<Requester | undefined, Waiting[]>()

  get overruns(): Overruns {
    return this.#overruns
  }

  get isEmpty(): boolean {
    return this.#lists.size === 0
  }

  add(waiting: Waiting): void {
    const { requester } = waiting.question
    const list = this.#lists.get(requester)
    if (list === undefined) this.#lists.set(requester, [waiting])
    else list.push(waiting)
  }

  remove(waiting: Waiting): void {
    const { requester } = waiting.question
    const left = this.#lists.get(requester)?.filter((other) => other !== waiting) ?? []
    if (left.length > 0) this.#lists.set(requester, left)
    else this.#lists.delete(requester)
  }

  take(): Waiting | undefined {
    let best: [Requester | undefined, Waiting[]] | undefined
    let lowest = Number.POSITIVE_INFINITY
    for (const [requester, list] of this.#lists) {
      const [first] = list
      const rank = first === undefined ? lowest : this.#rankOf(first)
      if (rank >= lowest) continue
      best = [requester, list]
      lowest = rank
      if (rank === 0) break
    }
    if (best === undefined) return undefined
    const [requester, list] = best
    const next = list.shift()
    this.#lists.delete(requester)
    if (list.length > 0) this.#lists.set(requester, list)
    return next
  }

  #rankOf({ shortTries, question }: Waiting): number {
    return shortTries * MAX_OVERRUNS + Math.min(this.#overruns.of(question), MAX_OVERRUNS - 1)
  }
}

/**
 * A child process that answers questions, one at a time. A child that cannot be interrupted when a question overruns is killed; the
 * next question starts another one. A thread is not enough: if a native step exceeds the heap of a thread, V8 aborts the whole process.
 */
class JudgeProcess {
  readonly #turns = new Turns()
  readonly #maxTryMs: number
  readonly #onOverrun: (waiting: Waiting) => void
  /** The timer of each question that waits; it ends the wait. */
  readonly #timers = new Map<Waiting, NodeJS.Timeout>()
  #busy = false
  #child: ChildProcess | undefined
  #heapMb = 0
  #idle: NodeJS.Timeout | undefined
  #onMessage: ((message: JudgeMessage | Judgement) => void) | undefined

  /** @param onOverrun called with a question that overran a try shorter than its deadline. */
  constructor(maxTryMs: number, onOverrun: (waiting: Waiting) => void) {
    this.#maxTryMs = maxTryMs
    this.#onOverrun = onOverrun
  }

  add(waiting: Waiting): void {
    this.#turns.add(waiting)
    const settleBusy = (): void => {
      this.#turns.remove(waiting)
      this.#timers.delete(waiting)
      waiting.settle({ kind: 'busy' })
    }
    const leftMs = waiting.askedAt + MAX_WAIT_MS - performance.now()
    this.#timers.set(waiting, setTimeout(settleBusy, Math.max(leftMs, 0)))
    if (!this.#busy) void this.#work()
  }

  async #work(): Promise<void> {
    this.#busy = true
    clearTimeout(this.#idle)
    for (let next = this.#turns.take(); next !== undefined; next = this.#turns.take()) await this.#judge(next)
    this.#busy = false
    if (this.#child !== undefined) release(this.#child)
    this.#idle = setTimeout(() => this.#rest(), IDLE_MS).unref()
  }

  async #judge(waiting: Waiting): Promise<void> {
    const { question, settle } = waiting
    const { requester, deadlineMs } = question
    clearTimeout(this.#timers.get(waiting))
    this.#timers.delete(waiting)
    if (requester?.isOver === true) return settle({ kind: 'timed-out' })
    const shortMs = this.#maxTryMs < deadlineMs && !this.#turns.isEmpty ? SHORT_TRIES_MS[waiting.shortTries] : undefined
    const tryMs = Math.min(deadlineMs, shortMs ?? this.#maxTryMs)
    const judgement = await this.#answer(question, tryMs)
    if (judgement.kind === 'answer') this.#turns.overruns.forget(question)
    if (judgement.kind === 'timed-out') this.#turns.overruns.note(question)
    if (judgement.kind !== 'timed-out' || deadlineMs <= tryMs) return settle(judgement)
    waiting.shortTries += 1
    if (shortMs !== undefined && waiting.shortTries < SHORT_TRIES_MS.length) this.add(waiting)
    else this.#onOverrun(waiting)
  }

  async #answer({ module, input, inputBytes }: Question, tryMs: number): Promise<Judgement> {
    const { promise, resolve } = Promise.withResolvers<Judgement>()
    let timer: NodeJS.Timeout | undefined
    const allow = (ms: number, otherwise: Judgement): void => {
      clearTimeout(timer)
      timer = setTimeout(() => resolve(otherwise), ms)
    }
    try {
      const child = this.#getChild(
        HEAP_MB + Math.ceil((HEAP_BYTES_PER_BYTE * Math.max(inputBytes, MAX_KEPT_BYTES)) / MiB),
      )
      hold(child)
      this.#onMessage = (message) => {
        if (message.kind === 'started') allow(tryMs + KILL_MS, { kind: 'timed-out' })
        else if (message.kind === 'interrupted') resolve(INTERRUPTED)
        else resolve(message)
      }
      allow(START_MS, { kind: 'failed', text: `the process for checks was not ready within ${START_MS} ms` })
      const request: JudgeRequest = { module: module.href, input: input(), interruptMs: tryMs }
      // The event `error` reports a child that could not be started, and `exit` one that has ended.
      if (child.pid !== undefined) child.send(request, () => {})
    } catch (error) {
      resolve({ kind: 'failed', text: String(error) })
    }
    const judgement = await promise
    clearTimeout(timer)
    this.#onMessage = undefined
    const isUsable = judgement.kind === 'answer' || judgement === INTERRUPTED
    if (!isUsable || inputBytes > MAX_KEPT_BYTES) this.#end()
    return judgement
  }

  /** Returns the running child, or a new one if that has less memory than the question may need. */
  #getChild(heapMb: number): ChildProcess {
    if (this.#child !== undefined && this.#heapMb >= heapMb) return this.#child
    this.#end()
    this.#heapMb = heapMb
    const child = startChild(heapMb)
    const notify = (message: JudgeMessage | Judgement): void => {
      if (this.#child === child) this.#onMessage?.(message)
    }
    child.on('message', (message) => notify(message as JudgeMessage))
    child.on('error', (error) => notify({ kind: 'failed', text: String(error) }))
    child.on('exit', (_, signal) => {
      notify(
        signal === 'SIGABRT' ? { kind: 'out-of-memory' } : { kind: 'failed', text: 'the process for checks ended' },
      )
      // The child may exit between questions: the next question must not wait for it.
      if (this.#child === child) this.#child = undefined
    })
    return (this.#child = child)
  }

  #rest(): void {
    this.#turns.overruns.clear()
    this.#end()
  }

  #end(): void {
    const child = this.#child
    this.#child = undefined
    if (child === undefined) return
    release(child)
    // Without a pid, for example if no descriptor was left, Node would signal pid 0, the process group of the host.
    if (child.pid !== undefined) child.kill('SIGKILL')
  }
}

/**
 * Starts `child.ts`: with a shell that sets its limits, or directly if there is no shell, as in small container images.
 * @throws Error if the module is missing, as next to a bundle: a single-executable program would start itself again.
 */
function startChild(heapMb: number): ChildProcess {
  const path = fileURLToPath(siblingModule(import.meta.url, 'child'))
  if (!existsSync(path)) throw new Error(`${basename(path)} is missing: the package cannot be part of a bundle`)
  const program = [
    process.execPath,
    `--max-old-space-size=${heapMb}`,
    `--max-semi-space-size=${SEMI_SPACE_MB}`,
    `--stack-size=${STACK_KB}`,
    '--no-warnings',
    path,
  ] as const
  const limited = [SHELL, '-c', SET_LIMITS, 'sandglass-judge', ...program] as const
  const [command, ...args] = existsSync(SHELL) ? limited : program
  return spawn(command, args, {
    // The child needs nothing from the host's environment.
    env: {},
    // The host's working directory could not be unmounted while the child runs.
    cwd: '/',
    // In its own session, because the host handles Ctrl-C in the terminal.
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    serialization: 'advanced',
  })
}

/** Keeps the host alive until {@link release}. */
function hold(child: ChildProcess): void {
  child.ref()
  child.channel?.ref()
}

function release(child: ChildProcess): void {
  child.unref()
  child.channel?.unref()
}

/** The child interrupted itself and is ready for the next question. */
const INTERRUPTED: Judgement = { kind: 'timed-out' }

const slow = new JudgeProcess(Number.POSITIVE_INFINITY, ({ settle }) => settle({ kind: 'timed-out' }))
const quick = new JudgeProcess(FIRST_TRY_MS, (waiting) => slow.add(waiting))

/**
 * Asks the judge's two processes, which the whole host shares: one tries every question for a short time, the other one tries those
 * that need longer, so that slow questions delay quick ones little. The host does not block; its only work is the input, which
 * is created and copied for each try. Never rejects.
 */
export function askJudge(question: Question): Promise<Judgement> {
  const { promise, resolve } = Promise.withResolvers<Judgement>()
  const shortTries = question.inputBytes > MAX_QUICK_BYTES ? 1 : 0
  quick.add({ question, settle: resolve, askedAt: performance.now(), shortTries })
  return promise
}
