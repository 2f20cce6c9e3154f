import { constants } from 'node:os'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { SandglassError } from '../../../src/errors/index.ts'
import { type ContainerHandle, ManagedContainer } from '../../../src/engines/docker/managed-container.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** A container whose daemon does what the test says. */
function made({ told = false, ...given }: Partial<ContainerHandle> & { readonly told?: boolean } = {}): {
  readonly container: ManagedContainer
  /** Its connection ends, and the daemon says with which code it ended. */
  end(exitCode: number | null): void
} {
  const { promise: removed, resolve } = Promise.withResolvers<number | null>()
  const { promise: ended, resolve: disconnect } = Promise.withResolvers<void>()
  const handle: ContainerHandle = {
    id: 'x',
    timeoutMs: 1000,
    removed,
    kill: () => Promise.resolve(),
    setCpus: () => Promise.resolve(),
    diedOfMemory: () => Promise.resolve(told),
    abandon: () => {},
    ...given,
  }
  const channel = { receive: () => Promise.resolve(null), send: () => Promise.resolve(), close: () => {} }
  return {
    container: new ManagedContainer(handle, { channel, lastWords: () => '', ended }),
    end(exitCode) {
      disconnect()
      resolve(exitCode)
    },
  }
}

async function causeOf({ container }: { readonly container: ManagedContainer }): Promise<string> {
  await vi.advanceTimersByTimeAsync(1000)
  const { cause, by } = await container.closed
  return `${cause} by ${by}`
}

describe('an end by SIGKILL', () => {
  test('is a lack of memory when the daemon told of a kill just before', async () => {
    const it = made()
    it.container.noteOutOfMemory()
    await vi.advanceTimersByTimeAsync(1500)
    it.end(137)
    expect(await causeOf(it)).toBe('memory-limit by kernel')
  })

  test('is one also when the daemon tells of the kill a moment later', async () => {
    const it = made()
    it.end(137)
    await vi.advanceTimersByTimeAsync(200)
    it.container.noteOutOfMemory()
    expect(await causeOf(it)).toBe('memory-limit by kernel')
  })

  test('is none when that kill is long ago, whatever the kernel’s log still has of it', async () => {
    const it = made({ told: true })
    it.container.noteOutOfMemory()
    await vi.advanceTimersByTimeAsync(2500)
    it.end(137)
    expect(await causeOf(it)).toBe('signal by unknown')
  })

  test('is one again when a new kill follows an old one', async () => {
    const it = made()
    it.container.noteOutOfMemory()
    await vi.advanceTimersByTimeAsync(2500)
    it.end(137)
    await vi.advanceTimersByTimeAsync(100)
    it.container.noteOutOfMemory()
    expect(await causeOf(it)).toBe('memory-limit by kernel')
  })

  test('is what the kernel’s log says where the daemon never told of a kill', async () => {
    const causes = [true, false].map(async (told) => {
      const it = made({ told })
      it.end(137)
      return causeOf(it)
    })
    expect(await Promise.all(causes)).toEqual(['memory-limit by kernel', 'signal by unknown'])
  })
})

test('an end by any signal of Linux names it', async () => {
  const names = Object.entries(constants.signals).filter(([name]) => !['SIGIOT', 'SIGPOLL', 'SIGUNUSED'].includes(name))
  const endings = names.map(async ([, number]) => {
    const it = made()
    it.end(128 + number)
    await vi.advanceTimersByTimeAsync(1000)
    const { cause, signal, exitCode } = await it.container.closed
    return { cause, signal, exitCode }
  })
  expect(await Promise.all(endings)).toEqual(names.map(([signal]) => ({ cause: 'signal', signal, exitCode: null })))
})

test.each([0, 1, 70, 128, 255])('an end with the code %i is an exit', async (code) => {
  const it = made()
  it.end(code)
  expect(await it.container.closed).toEqual({ cause: 'exit', signal: null, exitCode: code, by: 'unknown' })
})

test.each([
  ['works', () => Promise.resolve(), true],
  ['is refused', () => Promise.reject(new SandglassError('sandbox_setup_failed', 'no')), false],
  ['has no answer', () => Promise.reject(new SandglassError('docker_unreachable', 'silence')), undefined],
] as const)('whether its CPU limit can be changed, when that %s', async (_, setCpus, expected) => {
  expect(await made({ setCpus }).container.canChangeCpus(1)).toBe(expected)
})
