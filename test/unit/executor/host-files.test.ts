import { execFileSync } from 'node:child_process'
import { appendFileSync, chmodSync, mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ScriptExecutor } from '../../../src/executor/index.ts'
import { sizeOfHostFile } from '../../../src/executor/host-file.ts'
import type { FilesInput } from '../../../src/index.ts'
import { openDirectory } from '../../support/state-directory.ts'
import { done, ID, play, sandboxOf } from './wire.ts'

const CHUNK = 192 * 1024
let host = ''
beforeEach(() => void (host = openDirectory('host-files')))
afterEach(() => {
  vi.useRealTimers()
  rmSync(host, { recursive: true })
})

/** Writes a file of the host, and returns its path. */
function hostFile(name: string, content: Uint8Array | string): string {
  const path = join(host, name)
  writeFileSync(path, content)
  return path
}

/** The files that a sandbox gets, put together of their pieces. */
async function sent(files: FilesInput): Promise<Record<string, [mode: number, content: string]>> {
  const { sandbox } = await play([done()], { request: { files } })
  const got: Record<string, [number, string]> = {}
  for (const frame of sandbox.sent) {
    if (frame.type !== 'file_put') continue
    const before = got[frame.path]?.[1] ?? ''
    expect([frame.offset, frame.content_base64.length]).toEqual([
      before.length,
      expect.toSatisfy((n) => n <= CHUNK * 2),
    ])
    got[frame.path] = [frame.mode, before + Buffer.from(frame.content_base64, 'base64').toString('latin1')]
  }
  return got
}

/** The error of files that are refused before anything is sent. */
async function refusal(files: FilesInput): Promise<string> {
  const sandbox = sandboxOf([done()])
  const running = new ScriptExecutor().run({ sandbox, script: 'x', files })
  const { code, message } = await running.then(
    () => ({ code: 'it ran', message: '' }),
    (error: { code: string; message: string }) => error,
  )
  expect([code, sandbox.sent, sandbox.destroyed]).toEqual(['invalid_request', [], false])
  return message.replaceAll(host, 'HOST')
}

describe('a file of the host', () => {
  test('is sent in pieces as it is read, also through a link, with the given mode', async () => {
    const large = 'large '.repeat(70_000)
    symlinkSync(hostFile('large', large), join(host, 'link'))
    expect(
      await sent({
        large: { path: join(host, 'large') },
        link: { path: join(host, 'link'), mode: 0o755 },
        empty: { path: hostFile('empty', '') },
        text: 'beside it',
      }),
    ).toEqual({ large: [0o644, large], link: [0o755, large], empty: [0o644, ''], text: [0o644, 'beside it'] })
  })

  test('may be one of /proc, whose size is 0', async () => {
    expect((await sent({ status: { path: '/proc/self/status' } }))['status']?.[1]).toContain('VmRSS')
  })

  test('that is missing, no regular file or a link to nothing is refused before anything is sent', async () => {
    mkdirSync(join(host, 'directory'))
    execFileSync('mkfifo', [join(host, 'fifo')])
    symlinkSync('gone', join(host, 'dangling'))
    symlinkSync('loop', join(host, 'loop'))
    const refused = (name: string): Promise<string> => refusal({ 'in/a': { path: join(host, name) } })
    expect(await refused('missing')).toContain('files["in/a"].path: it cannot be read: ENOENT')
    expect(await refused('directory')).toBe('files["in/a"].path: "HOST/directory" is not a regular file')
    expect(await refused('fifo')).toBe('files["in/a"].path: "HOST/fifo" is not a regular file')
    expect(await refused('dangling')).toContain('files["in/a"].path: it cannot be read: ENOENT')
    expect(await refused('loop')).toContain('files["in/a"].path: it cannot be read: ELOOP')
    expect(await refusal({ a: { path: '/dev/zero' } })).toBe('files["a"].path: "/dev/zero" is not a regular file')
    expect(await refusal({ a: { path: '' } })).toContain('files["a"].path: it cannot be read: ENOENT')
    expect(await refusal({ a: { path: 'x\0y' } })).toContain('files["a"].path: it cannot be read')
  })

  describe.runIf(process.getuid?.() === 0)('of another user', () => {
    let [size, said] = [0, '']

    // Root reads everything, so another user asks, in a process of its own.
    beforeEach(async () => {
      const path = hostFile('private', 'x')
      chmodSync(host, 0o755)
      chmodSync(path, 0o600)
      size = await sizeOfHostFile(path, 'files')
      const program = `import { sizeOfHostFile } from ${JSON.stringify(new URL('../../../src/executor/host-file.ts', import.meta.url).href)}
      await sizeOfHostFile(${JSON.stringify(path)}, 'files').catch((error) => console.log(error.code, error.message))`
      const source = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program]
      said = execFileSync(process.execPath, source, { uid: 65_534, gid: 65_534, cwd: '/', encoding: 'utf8' })
    })

    test('is refused where this user may not read it', () => {
      expect(size).toBe(1)
      expect(said).toContain('invalid_request files: it cannot be read: EACCES')
    })
  })

  test('that cannot fit on the disk is refused, with what to do', async () => {
    const path = hostFile('huge', '')
    truncateSync(path, 128 * 1024 * 1024)
    const stream = (async function* () {})()
    expect(await refusal({ a: { stream, size: 128 * 1024 * 1024 }, b: 'xy' })).toContain('134217730 bytes do not fit')
    expect(await refusal({ a: { stream, size: -1 } })).toBe('files["a"].size: -1 is not a number of bytes')
    expect(await refusal({ a: { path }, b: 'x' })).toBe(
      'files: 134217729 bytes do not fit on a disk of 134217728; raise limits.diskBytes, or use a workspace: its addInput() mounts large files without a copy',
    )
  })

  test.each([
    ['grows', (path: string) => appendFileSync(path, 'more')],
    ['shrinks', (path: string) => truncateSync(path, 300_000)],
    ['is overwritten', (path: string) => writeFileSync(path, Buffer.alloc(CHUNK * 3, 'y'))],
  ])('that %s while it is read ends the run, and no script starts', async (_how, change) => {
    const path = hostFile('log', Buffer.alloc(CHUNK * 3, 'x'))
    const sandbox = sandboxOf([done()], {
      respond: (frame) => {
        if (frame.type === 'file_put' && frame.offset === 0) change(path)
        return undefined
      },
    })
    const running = new ScriptExecutor().run({ sandbox, script: 'x', executionId: ID, files: { log: { path } } })
    await expect(running).rejects.toMatchObject({
      code: 'invalid_request',
      message: `files["log"].path: ${JSON.stringify(path)} changed while it was read; pass a copy that does not change`,
    })
    expect([sandbox.destroyed, sandbox.sent.some(({ type }) => type === 'execute')]).toEqual([true, false])
  })

  test('that gives an error while it is read ends the run', async () => {
    const running = play([done()], { request: { files: { memory: { path: '/proc/self/mem' } } } })
    await expect(running).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('files["memory"].path: it cannot be read: EIO') as string,
    })
  })

  test('is given in one way only', async () => {
    const both = { content: 'x', path: '/etc/hostname' } as unknown as string
    expect(await refusal({ a: both })).toContain('files["a"]: an object is not a file: give a string')
    expect(await refusal({ a: { path: 7 } as unknown as string })).toBe('files["a"].path: 7 is not a string')
    expect(await refusal({ a: { path: '/etc/hostname', mode: 0o1000 } })).toContain('files["a"].mode: 512')
    expect(await refusal({ a: { stream: 'x' } as unknown as string })).toContain('is not an async iterable of bytes')
  })
})

describe('a stream', () => {
  test('is sent in whole pieces, however small its own are', async () => {
    async function* pieces(): AsyncGenerator<Uint8Array | string> {
      for (let n = 0; n < 1000; n += 1) yield n % 2 === 0 ? '0123456789' : Buffer.alloc(1000, '-')
      await Promise.resolve()
    }
    expect(await sent({ a: { stream: pieces(), mode: 0o600 } })).toEqual({
      a: [0o600, `0123456789${'-'.repeat(1000)}`.repeat(500)],
    })
  })

  test('that fails, or gives something else, ends the run with its error', async () => {
    async function* failing(): AsyncGenerator<string> {
      yield 'x'
      await Promise.reject(new Error('the line is dead'))
    }
    const failed = (stream: AsyncIterable<string>): Promise<unknown> =>
      play([done()], { request: { files: { a: { stream } } } })
    await expect(failed(failing())).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'files["a"]: its source failed: the line is dead',
    })
    const numbers = (async function* () {
      yield await Promise.resolve(1)
    })() as unknown as AsyncIterable<string>
    await expect(failed(numbers)).rejects.toThrow('files["a"]: its source failed: 1 is neither bytes nor text')
  })

  /** Gives one piece and then nothing. */
  const stalling = (): { stream: AsyncIterable<string>; left: () => boolean } => {
    let isLeft = false
    const first = { value: 'x', done: false }
    let asked = 0
    const stream = {
      [Symbol.asyncIterator]: () => ({
        next: () => (asked++ === 0 ? Promise.resolve(first) : Promise.withResolvers<IteratorResult<string>>().promise),
        return: () => {
          isLeft = true
          return Promise.resolve({ value: undefined, done: true as const })
        },
      }),
    }
    return { stream, left: () => isLeft }
  }

  test('that stalls ends the run 5 s after its timeout, and is left', async () => {
    vi.useFakeTimers()
    const { stream, left } = stalling()
    const running = play([], {
      replay: { after: 'open' },
      limits: { executionTimeoutSec: 1 },
      request: { files: { 'a b': { stream } } },
    })
    running.catch(() => undefined)
    await vi.advanceTimersByTimeAsync(6100)
    await expect(running).rejects.toThrow('files["a b"]: its source sent no more data before the timeout')
    expect(left()).toBe(true)
  })

  test('that stalls does not hold a run that is cancelled', async () => {
    const { stream, left } = stalling()
    const abort = new AbortController()
    const running = play([], { replay: { after: 'open' }, request: { signal: abort.signal, files: { a: { stream } } } })
    setImmediate(() => abort.abort())
    expect((await running).result.status).toBe('cancelled')
    expect(left()).toBe(true)
  })
})

describe('the time of a run', () => {
  const pieces = 4
  const limits = { executionTimeoutSec: 1 }
  const wait = (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    setTimeout(resolve, 4000)
    return promise
  }

  test('does not begin while a source gives its pieces slowly', async () => {
    vi.useFakeTimers()
    async function* slow(): AsyncGenerator<Uint8Array> {
      for (let n = 0; n < pieces; n += 1) {
        await wait()
        yield new Uint8Array(CHUNK)
      }
    }
    const running = play([done()], { limits, request: { files: { slow: { stream: slow() } } } })
    await vi.advanceTimersByTimeAsync(4000 * pieces + 100)
    expect((await running).result.status).toBe('step-done')
  })

  test('is over for a peer that takes the pieces slowly', async () => {
    vi.useFakeTimers()
    const sandbox = sandboxOf([done()])
    const send = sandbox.channel.send.bind(sandbox.channel)
    sandbox.channel.send = async (bytes) => {
      await wait()
      return send(bytes)
    }
    const files = { slow: new Uint8Array(CHUNK * pieces) }
    const running = new ScriptExecutor({ mode: 'interactive', limits }).run({ sandbox, script: 'x', files })
    await vi.advanceTimersByTimeAsync(7000)
    expect([(await running).status, sandbox.destroyed]).toEqual(['timed-out', true])
  })
})
