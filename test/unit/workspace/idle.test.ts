import { once } from 'node:events'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { checkWorkspaceOptions } from '../../../src/options/index.ts'
import { HeldSession } from '../../../src/session/index.ts'
import { FakeWorkspace, obedient } from '../../support/fake-workspace.ts'

const IDLE_MS = 60_000

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

function open(): FakeWorkspace {
  const fake = new FakeWorkspace({ idleTimeoutSec: IDLE_MS / 1000 })
  fake.answer = obedient()
  return fake
}

test('a workspace that nobody uses is closed, and says why', async () => {
  const fake = open()
  vi.advanceTimersByTime(IDLE_MS - 1)
  expect(fake.isDestroyed).toBe(false)
  vi.advanceTimersByTime(1)
  expect(fake.isDestroyed).toBe(true)
  await expect(fake.ws.exec('true')).rejects.toMatchObject({
    code: 'workspace_closed',
    message: expect.stringContaining('not used for 60 s (idleTimeoutSec)') as string,
  })
  await fake.ws.close()
})

test('a call that has not settled keeps it open; the time begins at its end', async () => {
  const fake = open()
  const controller = new AbortController()
  const call = fake.ws.exec('sleep', ['9999'], { timeoutSec: 9999, signal: controller.signal })
  vi.advanceTimersByTime(5 * IDLE_MS)
  expect(fake.isDestroyed).toBe(false)
  controller.abort()
  await expect(call).rejects.toMatchObject({ code: 'aborted' })
  vi.advanceTimersByTime(IDLE_MS - 1)
  expect(fake.isDestroyed).toBe(false)
  vi.advanceTimersByTime(1)
  expect(fake.isDestroyed).toBe(true)
})

test('a program that says something uses it, and so does a reader; one that is silent does not', async () => {
  const fake = open()
  const program = await fake.ws.start('server')
  const polled = program.poll({ waitMs: 3 * IDLE_MS })
  vi.advanceTimersByTime(2 * IDLE_MS)
  fake.output(program.id, 'stdout', 'x')
  expect((await polled).text).toBe('x')
  for (let round = 0; round < 3; round += 1) {
    vi.advanceTimersByTime(IDLE_MS - 1)
    fake.output(program.id, 'stdout', 'y')
    await new Promise(setImmediate)
  }
  expect(fake.isDestroyed).toBe(false)
  vi.advanceTimersByTime(IDLE_MS)
  expect(fake.isDestroyed).toBe(true)
  await expect(program.exited).rejects.toMatchObject({ code: 'workspace_closed' })
})

test('a connection uses it while bytes pass', async () => {
  const fake = open()
  const socket = fake.ws.dial(8000)
  vi.advanceTimersByTime(IDLE_MS - 1)
  socket.write('x')
  vi.advanceTimersByTime(IDLE_MS - 1)
  expect(fake.isDestroyed).toBe(false)
  const failed = once(socket, 'error')
  vi.advanceTimersByTime(1)
  expect(await failed).toMatchObject([{ code: 'workspace_closed' }])
  expect(fake.isDestroyed).toBe(true)
})

test('a session that opens uses it, and so do branches; one that waits for cells does not', async () => {
  const fake = open()
  const opening: string[] = []
  fake.answer = ({ type, execution_id: id }) => void (type.startsWith('session') && opening.push(id))
  const becomeReady = (): void => {
    const checkpoint = { grade: 'whole', lacks: [] }
    for (const id of opening.splice(0)) fake.frames({ type: 'session_ready', execution_id: id, checkpoint })
  }
  const opened = HeldSession.open(fake.ws, { checkpoints: true, memoryBytes: 1 })
  await new Promise(setImmediate)
  vi.advanceTimersByTime(2 * IDLE_MS)
  becomeReady()
  const session = await opened
  vi.advanceTimersByTime(IDLE_MS - 1)
  const branched = session.branch(2)
  await new Promise(setImmediate)
  vi.advanceTimersByTime(2 * IDLE_MS)
  expect(fake.isDestroyed).toBe(false)
  becomeReady()
  await branched
  vi.advanceTimersByTime(IDLE_MS)
  expect(fake.isDestroyed).toBe(true)
  await expect(session.variables()).rejects.toMatchObject({ code: 'workspace_closed' })
})

test('without the option it stays open', () => {
  const fake = new FakeWorkspace()
  vi.advanceTimersByTime(1000 * IDLE_MS)
  expect(fake.isDestroyed).toBe(false)
})

test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, '60'])('idleTimeoutSec: %s is refused', (given) => {
  expect(() => checkWorkspaceOptions({ idleTimeoutSec: given as number })).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  )
})
