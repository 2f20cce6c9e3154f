import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { Hang } from '../hang.ts'

const HARNESS = join(import.meta.dirname, '../../../harness')
/** The process ends a case after 5 s of CPU time or 60 s; a process that handles no Python signals is killed here. */
const ANSWER_MS = 90_000

/** Input for the harness's code; see harness/tests/broker/fuzz_broker.py. */
export interface Play {
  readonly play: 'broker' | 'child' | 'lines'
  readonly pieces: readonly Uint8Array[]
  /** Bytes from the process of the script. */
  readonly child?: Uint8Array
  readonly [option: string]: unknown
}

/** The outcome of a case. */
export interface Played {
  /**
   * `ended`: by the end of the channel; `refused`: by the broker itself, with `message`; `hang`: not within the time of a
   * case; `crash`: anything else.
   */
  readonly outcome: 'ended' | 'refused' | 'hang' | 'crash'
  readonly message: string
  /** Bytes for the host. */
  readonly sent: Buffer
}

type Process = ChildProcessByStdio<Writable, Readable, Readable>

/** A Python process with the broker's code. It is restarted after a case that ended it. */
export class Peer implements AsyncDisposable {
  #process: Process | undefined
  #held: Buffer[] = []
  #size = 0
  #news = Promise.withResolvers<void>()
  #ended = false
  #stderr = ''
  #turn: Promise<unknown> = Promise.resolve()
  readonly #python: string

  /** @param python the program that runs the harness. */
  constructor(python: string) {
    this.#python = python
  }

  /** @throws Error if the process ends; {@link Hang} if it does not answer in time. */
  async play({ pieces, child = new Uint8Array(), ...header }: Play): Promise<Played> {
    return this.#ask({ ...header, pieces: pieces.map(({ length }) => length), child: child.length }, [...pieces, child])
  }

  /** Resident bytes of the process after garbage collection. */
  async memory(): Promise<number> {
    return Number((await this.#ask({ play: 'memory' }, [])).message)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const running = this.#process
    if (running === undefined || this.#ended) return
    const { promise, resolve } = Promise.withResolvers<void>()
    running.once('close', () => resolve())
    running.stdin.end()
    const timer = setTimeout(() => running.kill('SIGKILL'), ANSWER_MS)
    await promise
    clearTimeout(timer)
  }

  /** Requests are written at once and answered in order. */
  async #ask(header: object, bytes: readonly Uint8Array[]): Promise<Played> {
    const asked = (this.#process ??= this.#start())
    asked.stdin.write(Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), ...bytes]))
    const answer = this.#turn.then(() => this.#answer(asked))
    this.#turn = answer.catch(() => undefined)
    return answer
  }

  async #answer(asked: Process): Promise<Played> {
    let isLate = false
    const timer = setTimeout(() => (isLate = asked.kill('SIGKILL')), ANSWER_MS)
    try {
      if (asked !== this.#process) throw new Error('the process ended during an earlier case')
      type Head = Omit<Played, 'sent'> & { readonly size: number }
      const { outcome, message, size } = JSON.parse((await this.#line()).toString()) as Head
      return { outcome, message, sent: await this.#take(size) }
    } catch (error) {
      asked.kill('SIGKILL')
      this.#process = undefined
      if (isLate) throw new Hang(`no answer within ${ANSWER_MS} ms: ${this.#stderr}`, { cause: error })
      throw new Error(`the process with the broker's code is gone: ${this.#stderr}`, { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }

  #start(): Process {
    const started = spawn(this.#python, ['-B', '-X', 'utf8', '-m', 'tests.broker.fuzz_broker'], {
      cwd: HARNESS,
      stdio: 'pipe',
    })
    this.#held = []
    this.#size = 0
    this.#stderr = ''
    this.#ended = false
    started.stdin.on('error', () => {}) // its end reports the error
    started.stdout.on('data', (chunk: Buffer) => {
      this.#held.push(chunk)
      this.#size += chunk.length
      this.#news.resolve()
    })
    started.stderr.setEncoding('utf8').on('data', (text: string) => (this.#stderr = (this.#stderr + text).slice(-4000)))
    started.once('close', () => {
      this.#ended = true
      this.#news.resolve()
    })
    return started
  }

  async #line(): Promise<Buffer> {
    for (;;) {
      const bytes = this.#joined()
      const end = bytes.indexOf('\n')
      if (end !== -1) return (await this.#take(end + 1)).subarray(0, end)
      await this.#more()
    }
  }

  async #take(size: number): Promise<Buffer> {
    while (this.#size < size) await this.#more()
    const bytes = this.#joined()
    this.#held = [bytes.subarray(size)]
    this.#size -= size
    return bytes.subarray(0, size)
  }

  #joined(): Buffer {
    const bytes = Buffer.concat(this.#held)
    this.#held = [bytes]
    return bytes
  }

  async #more(): Promise<void> {
    if (this.#ended) throw new Error('it has ended')
    await this.#news.promise
    this.#news = Promise.withResolvers()
  }
}
