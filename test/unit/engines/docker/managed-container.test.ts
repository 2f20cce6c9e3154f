import { constants } from 'node:os'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { SandglassError } from '../../../../src/errors/index.ts'
import { type ContainerHandle, ManagedContainer } from '../../../../src/engines/docker/managed-container.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Makes a container with a fake daemon that the test controls. */
function makeContainer({
  killReported = false,
  ...given
}: Partial<ContainerHandle> & { readonly killReported?: boolean } = {}): {
  readonly container: ManagedContainer
  /** Ends its connection and reports its exit code, as the daemon does. */
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
    diedOfMemory: () => Promise.resolve(killReported),
    abandon: () => {},
    ...given,
  }
  const channel = { receive: () => Promise.resolve(null), send: () => Promise.resolve(), close: () => {} }
  return {
    container: new ManagedContainer(handle, { channel, lastOutput: () => '', ended }),
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
  test('is out-of-memory when the daemon reported a kill just before', async () => {
    const it = makeContainer()
    it.container.noteOutOfMemory()
    await vi.advanceTimersByTimeAsync(1500)
    it.end(137)
    expect(await causeOf(it)).toBe('memory-limit by kernel')
  })

  test('is out-of-memory also when the daemon reports the kill a moment later', async () => {
    const it = makeContainer()
    it.end(137)
    await vi.advanceTimersByTimeAsync(200)
    it.container.noteOutOfMemory()
    expect(await causeOf(it)).toBe('memory-limit by kernel')
  })

  test('is not out-of-memory when the kill was long ago, even if the kernel’s log still shows it', async () => {
    const it = makeContainer({ killReported: true })
    it.container.noteOutOfMemory()
    await vi.advanceTimersByTimeAsync(2500)
    it.end(137)
    expect(await causeOf(it)).toBe('signal by unknown')
  })

  test('is out-of-memory again when a new kill follows an old one', async () => {
    const it = makeContainer()
    it.container.noteOutOfMemory()
    await vi.advanceTimersByTimeAsync(2500)
    it.end(137)
    await vi.advanceTimersByTimeAsync(100)
    it.container.noteOutOfMemory()
    expect(await causeOf(it)).toBe('memory-limit by kernel')
  })

  test('follows the kernel’s log when the daemon never reported a kill', async () => {
    const causes = [true, false].map(async (killReported) => {
      const it = makeContainer({ killReported })
      it.end(137)
      return causeOf(it)
    })
    expect(await Promise.all(causes)).toEqual(['memory-limit by kernel', 'signal by unknown'])
  })
})

test('an end by any signal of Linux names it', async () => {
  const names = Object.entries(constants.signals).filter(([name]) => !['SIGIOT', 'SIGPOLL', 'SIGUNUSED'].includes(name))
  const endings = names.map(async ([, number]) => {
    const it = makeContainer()
    it.end(128 + number)
    await vi.advanceTimersByTimeAsync(1000)
    const { cause, signal, exitCode } = await it.container.closed
    return { cause, signal, exitCode }
  })
  expect(await Promise.all(endings)).toEqual(names.map(([signal]) => ({ cause: 'signal', signal, exitCode: null })))
})

test.each([0, 1, 70, 128, 255])('an end with the code %i is an exit', async (code) => {
  const it = makeContainer()
  it.end(code)
  expect(await it.container.closed).toEqual({ cause: 'exit', signal: null, exitCode: code, by: 'unknown' })
})

test.each([
  ['works', () => Promise.resolve(), true],
  ['is refused', () => Promise.reject(new SandglassError('sandbox_setup_failed', 'no')), false],
  ['has no answer', () => Promise.reject(new SandglassError('docker_unreachable', 'silence')), undefined],
] as const)('tells whether its CPU limit can be changed: the change %s', async (_, setCpus, expected) => {
  expect(await makeContainer({ setCpus }).container.canChangeCpus(1)).toBe(expected)
})
