import { ERRNO, type FileSystem } from './emscripten.ts'
import { SHARED } from './shared.ts'
import type { Traffic } from './traffic.ts'
import { FDS, type RunMessage, writeFully } from './wire.ts'

const SIGINT = 2
const SIGALRM = 14
/** The maximum time in the shared memory, 12 days: the sum of two does not overflow. */
const LONGEST_MS = 2 ** 30
const MAJOR = 64

/**
 * The clock of a script. Python reads this "buffer" every few dozen steps of its loop and takes a value as a signal, so that no
 * second thread is needed to interrupt the script.
 */
export class SignalClock {
  #endsAt = Infinity
  #maxWaitMs = 0
  #waitedMs = 0
  /** The number of the cell that runs; 0 for a script. */
  #turn = 0
  readonly #shared: Int32Array
  readonly #now: () => number
  readonly buffer: object

  /** @param now the watchdog's clock. */
  constructor(shared: Int32Array, now: () => number) {
    this.#shared = shared
    this.#now = now
    const readSignal = (): number => {
      if (this.#isInterrupted) {
        store(this.#shared, SHARED.interrupted, 0) // delivered once
        return SIGINT
      }
      if (performance.now() < this.#deadline) return 0
      this.#endsAt = Infinity // fires once
      store(this.#shared, SHARED.maxWait, this.#waitedMs) // from now on, nothing moves the kill
      return SIGALRM
    }
    this.buffer = Object.freeze({
      get 0(): number {
        return readSignal()
      },
      set 0(_value: number) {
        // Python writes a zero after each signal.
      },
    })
  }

  /** Starts the clock of a script. Without time for waiting, only the host kills a script that does not end. */
  start({ deadlineMs, maxWaitMs, graceMs }: Pick<RunMessage, 'deadlineMs' | 'maxWaitMs' | 'graceMs'>, turn = 0): void {
    this.#turn = turn
    this.#waitedMs = 0
    store(this.#shared, SHARED.waited, 0)
    this.#endsAt = performance.now() + deadlineMs
    this.#maxWaitMs = maxWaitMs
    store(this.#shared, SHARED.maxWait, Math.min(maxWaitMs, LONGEST_MS))
    if (maxWaitMs > 0) store(this.#shared, SHARED.endsAt, Math.min(this.#now() + deadlineMs + graceMs, LONGEST_MS))
  }

  stop(): void {
    this.#turn = 0
    this.#endsAt = Infinity
    store(this.#shared, SHARED.endsAt, 0)
  }

  /**
   * Adds the time in which a script waits for the host to its deadline. The host counts only the time in which its tools
   * execute.
   */
  wait<T>(waiting: () => T): T {
    const started = performance.now()
    store(this.#shared, SHARED.waitsSince, this.#now())
    try {
      return waiting()
    } finally {
      this.#waitedMs += performance.now() - started
      store(this.#shared, SHARED.waited, this.#waitedMs) // written first: the watchdog may read between the two
      store(this.#shared, SHARED.waitsSince, 0)
    }
  }

  get #isInterrupted(): boolean {
    return this.#turn !== 0 && load(this.#shared, SHARED.interrupted) === this.#turn
  }

  get #deadline(): number {
    return this.#endsAt + Math.min(this.#waitedMs, this.#maxWaitMs)
  }

  /** Waits, at most until the deadline or an interrupt. */
  sleep(ms: number): void {
    const max = Math.min(ms, Math.max(0, this.#deadline - performance.now()))
    const seen = load(this.#shared, SHARED.interrupted)
    if (!this.#isInterrupted) wait(this.#shared, SHARED.interrupted, seen, max)
  }
}

// Saved before the realm is closed.
const { load, store, wait } = Atomics

/**
 * Opens the descriptors of a script's process: 0 is empty, 1 and 2 are pipes to the host, 3 carries frames out and answers in.
 * A seek on 3 sleeps for that many microseconds, so that Python needs no other access to JavaScript.
 */
export function openDescriptors(FS: FileSystem, clock: SignalClock, traffic: Traffic): void {
  const output = (fd: number) => ({
    write(_stream: unknown, buffer: Uint8Array, offset: number, length: number): number {
      writeFully(fd, buffer.subarray(offset, offset + length))
      traffic.noteWritten(fd, length)
      return length
    },
  })
  const frames = {
    ...output(FDS.frames),
    read: (_stream: unknown, buffer: Uint8Array, offset: number, length: number): number =>
      clock.wait(() => traffic.read(buffer, offset, length)),
    llseek(_stream: unknown, offset: number): number {
      if (!(offset >= 0)) throw new FS.ErrnoError(ERRNO.EINVAL)
      clock.sleep(offset / 1000)
      return 0
    },
  }
  const nothing = {
    read: () => 0,
    write: (_stream: unknown, _buffer: Uint8Array, _offset: number, length: number) => length,
  }
  for (const stream of FS.streams) if (stream !== null && stream !== undefined) FS.close(stream)
  for (const [minor, [name, ops]] of Object.entries({
    empty: nothing,
    out: output(FDS.stdout),
    err: output(FDS.stderr),
    frames,
  }).entries()) {
    const device = FS.makedev(MAJOR, minor)
    FS.registerDevice(device, ops)
    FS.mkdev(`/dev/sandglass-${name}`, 0o600, device)
    const stream = FS.open(`/dev/sandglass-${name}`, name === 'empty' ? 'r' : name === 'frames' ? 'r+' : 'w')
    if (stream.fd !== minor) throw new Error(`descriptor ${minor} is taken`)
    stream.seekable = name === 'frames'
    FS.unlink(`/dev/sandglass-${name}`) // the script keeps only the open descriptors
  }
}
