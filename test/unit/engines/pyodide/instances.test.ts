import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { GuestMessage } from '../../../../src/engines/pyodide/guest/wire.ts'
import type { GuestProcess, ProcessEnd } from '../../../../src/engines/pyodide/guest-interface.ts'
import { Instances, QUIET_MS } from '../../../../src/engines/pyodide/instances.ts'
import { Reserve } from '../../../../src/engines/pyodide/reserve.ts'

const MiB = 1024 * 1024
const SIZE = 100 * MiB
const PLENTY = 100 * SIZE

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

/** A process of an instance, which the test makes ready, or ends. */
class FakeGuest implements GuestProcess {
  readonly pid = undefined
  readonly frames = new PassThrough()
  readonly stdout = new PassThrough()
  readonly stderr = new PassThrough()
  readonly unsentBytes = 0
  readonly #message = Promise.withResolvers<IteratorResult<GuestMessage>>()
  readonly #end = Promise.withResolvers<ProcessEnd>()
  readonly ended = this.#end.promise
  readonly control: AsyncIterableIterator<GuestMessage> = {
    next: () => this.#message.promise,
    [Symbol.asyncIterator]: () => this.control,
  }
  isLiving = true

  becomeReady(bytes: number | string | null = SIZE): void {
    const checks = { memory_bytes: bytes }
    this.#message.resolve({ done: false, value: { type: 'ready', python: '3.14.2', loaded: {}, checks } })
  }

  kill(): void {
    this.isLiving = false
    this.#message.resolve({ done: true, value: undefined })
    this.#end.resolve({ code: null, signal: 'SIGKILL' })
  }

  destroy = this.kill.bind(this)
  send = (): void => undefined
  sendToScript = (): void => undefined
  awaitTaken = (): Promise<void> => Promise.resolve()
  interrupt = (): void => undefined
  lastOutput = (): string => 'its last words'
}

/** The instances of a sandbox, and what became of them. */
class FakeSandbox {
  readonly guests: FakeGuest[] = []
  readonly events: string[] = []
  readonly instances: Instances

  constructor(reserve?: Reserve) {
    this.instances = new Instances({
      start: () => {
        const guest = new FakeGuest()
        this.guests.push(guest)
        return guest
      },
      startTimeoutMs: 60_000,
      ...(reserve === undefined ? {} : { reserve }),
      onReady: () => this.events.push('ready'),
      onFailed: (error) => this.events.push(String(error)),
      onLost: (lastOutput) => this.events.push(lastOutput),
    })
  }

  get living(): number {
    return this.guests.filter(({ isLiving }) => isLiving).length
  }

  /** Makes the instance ready that is being made. */
  async ready(bytes?: number | string | null): Promise<void> {
    this.guests.at(-1)?.becomeReady(bytes)
    await settled()
  }

  async begin(): Promise<void> {
    void this.instances.prepare()
    await this.ready()
  }

  /** Runs a script at once when an instance is there. */
  async run(): Promise<void> {
    const spare = this.instances.take()
    spare?.guest.destroy()
    void this.instances.prepare()
    await settled()
  }

  /** Runs scripts that wait for their instances, so that it wants one instance more for each of them. */
  async runInARow(runs: number): Promise<void> {
    await this.begin()
    await this.run() // the first run waits for the sandbox, not for an instance of it
    for (let n = 0; n < runs; n += 1) {
      await this.ready()
      await this.run()
    }
    await this.ready()
  }
}

/** Resolves when all that is due has happened. */
async function settled(): Promise<void> {
  for (let n = 0; n < 20; n += 1) await Promise.resolve()
}

const fresh = (maxBytes = PLENTY, available = 4 * PLENTY): Reserve => new Reserve(maxBytes, () => available)

test('one instance waits, however fast scripts follow each other, where there is no reserve', async () => {
  const sandbox = new FakeSandbox()
  await sandbox.runInARow(5)
  expect([sandbox.guests.length, sandbox.living, sandbox.instances.waiting]).toEqual([7, 1, 1])
})

test('one more instance waits for each run that had to wait for its instance', async () => {
  const sandbox = new FakeSandbox(fresh())
  await sandbox.runInARow(2)
  for (let n = 0; n < 5; n += 1) await sandbox.ready()
  expect([sandbox.instances.waiting, sandbox.living]).toEqual([3, 3])
  expect(sandbox.instances.bytes).toBe(3 * SIZE)
})

test('a run that finds an instance leaves their number as it is', async () => {
  const sandbox = new FakeSandbox(fresh())
  await sandbox.begin()
  for (let n = 0; n < 5; n += 1) {
    vi.advanceTimersByTime(1000)
    await sandbox.run()
    await sandbox.ready()
  }
  expect([sandbox.instances.waiting, sandbox.living]).toEqual([1, 1])
})

test('instances beyond the first are made one at a time', async () => {
  const sandbox = new FakeSandbox(fresh())
  await sandbox.runInARow(3)
  expect([sandbox.instances.waiting, sandbox.living]).toEqual([1, 2])
  await sandbox.ready()
  expect([sandbox.instances.waiting, sandbox.living]).toEqual([2, 3])
})

test('no sandbox gets a second instance while another one lacks its first', async () => {
  const reserve = fresh()
  const [one, other] = [new FakeSandbox(reserve), new FakeSandbox(reserve)]
  await other.begin()
  await one.runInARow(2) // wants 3, and its second one is being made
  await other.run()
  await one.ready()
  expect([one.instances.waiting, one.living, other.living]).toEqual([2, 2, 1])
  await other.ready()
  expect([one.living, other.living]).toEqual([3, 1]) // now the third
})

test('of several sandboxes, the one with the fewest instances gets the next, one after the other', async () => {
  const reserve = fresh()
  const [one, other] = [new FakeSandbox(reserve), new FakeSandbox(reserve)]
  await other.begin()
  await one.runInARow(2)
  await other.runInARow(2)
  expect([one.living, other.living]).toEqual([2, 1])
  await one.ready()
  expect([one.living, other.living]).toEqual([2, 2])
})

test.each([
  ['the bound of the reserve', fresh(2 * SIZE), 3],
  ['a reserve of 0 bytes', fresh(0), 1],
  ['a quarter of the available memory', fresh(PLENTY, 4 * SIZE - 1), 1],
])('no more instances are made than %s allows', async (_, reserve, most) => {
  const sandbox = new FakeSandbox(reserve)
  await sandbox.runInARow(8)
  for (let n = 0; n < 8; n += 1) await sandbox.ready()
  expect([sandbox.instances.waiting, sandbox.living]).toEqual([most, most])
})

test('the bound holds for all sandboxes of an engine, and what a closed one had is free for others', async () => {
  const reserve = fresh(2 * SIZE)
  const [one, other] = [new FakeSandbox(reserve), new FakeSandbox(reserve)]
  await other.begin()
  await one.runInARow(4)
  for (let n = 0; n < 4; n += 1) await one.ready()
  await other.runInARow(4)
  for (let n = 0; n < 4; n += 1) await other.ready()
  expect([one.instances.waiting, other.instances.waiting]).toEqual([3, 1])
  await one.instances.end([])
  await other.run()
  for (let n = 0; n < 4; n += 1) await other.ready()
  expect([one.living, other.instances.waiting]).toEqual([0, 3])
})

test('after a quiet time one instance waits, which is the one that the next script gets', async () => {
  const sandbox = new FakeSandbox(fresh())
  await sandbox.runInARow(3)
  for (let n = 0; n < 5; n += 1) await sandbox.ready()
  const next = sandbox.instances.spare
  vi.advanceTimersByTime(QUIET_MS - 1)
  expect(sandbox.living).toBe(4)
  vi.advanceTimersByTime(1)
  await settled()
  expect([sandbox.living, sandbox.instances.waiting, sandbox.events.filter((event) => event !== 'ready')]).toEqual([
    1,
    1,
    [],
  ])
  expect(sandbox.instances.take()).toBe(next)
})

test('an instance that is being made when the quiet time ends is ended when it is ready', async () => {
  const sandbox = new FakeSandbox(fresh())
  await sandbox.runInARow(1)
  vi.advanceTimersByTime(QUIET_MS)
  expect(sandbox.living).toBe(2)
  await sandbox.ready()
  expect([sandbox.living, sandbox.instances.waiting]).toEqual([1, 1])
})

test('files go to the instance that runs the script, also if others become ready meanwhile', async () => {
  const sandbox = new FakeSandbox(fresh())
  await sandbox.runInARow(2)
  const { spare } = sandbox.instances
  await sandbox.ready()
  await sandbox.ready()
  expect(sandbox.instances.waiting).toBe(3)
  expect(sandbox.instances.take()).toBe(spare)
})

test('an instance that is put back gets the next script, and one that is too many ends', async () => {
  const sandbox = new FakeSandbox(fresh())
  await sandbox.begin()
  const spare = sandbox.instances.take()
  if (spare === undefined) throw new Error('none waits')
  void sandbox.instances.prepare()
  await sandbox.ready()
  sandbox.instances.putBack(spare)
  expect([sandbox.instances.spare, sandbox.instances.waiting, sandbox.living]).toEqual([spare, 1, 1])
})

test.each(['that waits', 'that is being made'])(
  'an instance %s ends if one is put back and the reserve is full',
  async (which) => {
    const sandbox = new FakeSandbox(fresh(2 * SIZE))
    await sandbox.runInARow(4)
    for (let n = 0; n < 4; n += 1) await sandbox.ready()
    const spare = sandbox.instances.take()
    if (spare === undefined) throw new Error('none waits')
    void sandbox.instances.prepare()
    if (which === 'that waits') await sandbox.ready()
    sandbox.instances.putBack(spare)
    await sandbox.ready()
    expect([sandbox.instances.spare, sandbox.instances.waiting, sandbox.living]).toEqual([spare, 3, 3])
  },
)

test.each([0, -1, Number.NaN, '5', null])(
  'the bound holds if an instance says that it takes %s bytes',
  async (bytes) => {
    const sandbox = new FakeSandbox(fresh(2 * 162 * MiB))
    void sandbox.instances.prepare()
    await sandbox.ready(bytes)
    await sandbox.run()
    for (let n = 0; n < 6; n += 1) {
      await sandbox.ready(bytes)
      await sandbox.run()
    }
    for (let n = 0; n < 6; n += 1) await sandbox.ready(bytes)
    expect(sandbox.instances.waiting).toBe(3)
  },
)

test('a sandbox that needs no more than one gives the others up, however often it is used', async () => {
  const sandbox = new FakeSandbox(fresh())
  await sandbox.runInARow(3)
  for (let n = 0; n < 5; n += 1) await sandbox.ready()
  for (let n = 0; n < 3; n += 1) {
    expect(sandbox.instances.waiting).toBe(4)
    vi.advanceTimersByTime(QUIET_MS / 3)
    await sandbox.run()
    await sandbox.ready()
  }
  expect([sandbox.instances.waiting, sandbox.living]).toEqual([1, 1])
})

test('an instance beyond the first that cannot be made is no failure; the first is', async () => {
  const sandbox = new FakeSandbox(fresh())
  await sandbox.runInARow(2)
  sandbox.guests.at(-1)?.kill()
  await settled()
  expect([sandbox.instances.waiting, sandbox.living, sandbox.events.at(-1)]).toEqual([1, 1, 'ready'])
  await sandbox.run()
  sandbox.guests.at(-1)?.kill()
  await settled()
  expect(sandbox.events.at(-1)).toMatch(/did not become ready: it ended \(SIGKILL\); its stderr: its last words/)
})

test('the end of an instance beyond the next one is no loss', async () => {
  const sandbox = new FakeSandbox(fresh())
  await sandbox.runInARow(2)
  await sandbox.ready()
  await sandbox.ready()
  const next = sandbox.instances.spare
  sandbox.guests.at(-1)?.kill()
  await settled()
  expect([sandbox.instances.waiting, sandbox.events.at(-1)]).toEqual([2, 'ready'])
  expect(sandbox.instances.take()).toBe(next)
})

test('the end of the next instance is reported, and it gets no script', async () => {
  const sandbox = new FakeSandbox(fresh())
  await sandbox.runInARow(2)
  await sandbox.ready()
  sandbox.instances.spare?.guest.kill()
  await settled()
  expect(sandbox.events.at(-1)).toBe('its last words')
  expect(sandbox.instances.take()?.guest).toMatchObject({ isLiving: true })
})

test('all instances end with the sandbox, also the one that is being made', async () => {
  const sandbox = new FakeSandbox(fresh())
  await sandbox.runInARow(2)
  await sandbox.ready()
  expect(sandbox.living).toBe(3)
  await sandbox.instances.end([])
  await settled()
  expect(sandbox.living).toBe(0)
  expect(sandbox.events.filter((event) => event !== 'ready')).toEqual([])
})
