import { ERRNO, type FileSystem } from './emscripten.ts'
import { FDS, readInput, writeFully } from './wire.ts'

const SIGALRM = 14
const MAJOR = 64

/**
 * The clock of a script: Python looks at this "buffer" every few dozen steps of its loop and takes what it finds for a
 * signal. So the thread that runs the script needs nobody beside it to be interrupted.
 */
export class SignalClock {
  #deadline = Infinity
  readonly buffer: object

  constructor() {
    const look = (): number => {
      if (performance.now() < this.#deadline) return 0
      this.#deadline = Infinity // once, as an interval timer
      return SIGALRM
    }
    this.buffer = Object.freeze({
      get 0(): number {
        return look()
      },
      set 0(_value: number) {
        // Python puts a zero back.
      },
    })
  }

  start(afterMs: number): void {
    this.#deadline = performance.now() + afterMs
  }

  stop(): void {
    this.#deadline = Infinity
  }

  /** Waits, at most until the deadline. */
  sleep(ms: number): void {
    const most = Math.min(ms, Math.max(0, this.#deadline - performance.now()))
    wait(PAUSE, 0, 0, most)
  }
}

// Taken before the realm is shut.
const { wait } = Atomics
const PAUSE = new Int32Array(new SharedArrayBuffer(4))

/**
 * Gives Python the descriptors of a script's process: 0 is empty, 1 and 2 are pipes to the host, 3 is the way of frames
 * out and of answers in. To seek on 3 is to sleep for so many microseconds: no other call needs a word of JavaScript.
 */
export function openDescriptors(FS: FileSystem, clock: SignalClock): void {
  const output = (fd: number) => ({
    write(_stream: unknown, buffer: Uint8Array, offset: number, length: number): number {
      writeFully(fd, buffer.subarray(offset, offset + length))
      return length
    },
  })
  const frames = {
    ...output(FDS.frames),
    read: (_stream: unknown, buffer: Uint8Array, offset: number, length: number): number =>
      readInput(buffer, offset, length),
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
    FS.unlink(`/dev/sandglass-${name}`) // a script has the open descriptors and no more
  }
}
