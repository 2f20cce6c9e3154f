import { describe, expect, test } from 'vitest'
import { SandglassError } from '../../../src/errors/index.ts'
import type { WorkspaceActivities } from '../../../src/workspace/index.ts'
import { FakeWorkspace } from '../../support/fake-workspace.ts'

/** A sandbox that answers nothing of its own accord: a program writes a byte and ends, all else waits for its cancellation. */
function silent(): FakeWorkspace {
  const fake = new FakeWorkspace()
  fake.answer = ({ type, execution_id: id }) => {
    if (type === 'start') {
      fake.frames({ type: 'started', execution_id: id, pid: 7 })
      fake.output(id, 'stdout', 'x')
      fake.done(id)
    }
    if (type === 'cancel') fake.done(id, { ending: null, error: { code: 'cancelled', message: 'it was cancelled' } })
  }
  return fake
}

const never = (): Promise<never> => Promise.withResolvers<never>().promise

async function* stalling(): AsyncGenerator<string, void, void> {
  yield 'first'
  await never()
}

async function all(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

/** The code of the error with which a call rejects. */
function codeOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => 'it resolved',
    (error: unknown) => (error instanceof SandglassError ? error.code : error),
  )
}

const CALLS: Readonly<Record<string, (ws: WorkspaceActivities, signal: AbortSignal) => Promise<unknown>>> = {
  'put of a stream that stalls': (ws, signal) => ws.put({ a: { stream: stalling() } }, { signal }),
  'exec with a callback that never resolves': (ws, signal) => ws.exec('true', [], { onOutput: never, signal }),
  stat: (ws, signal) => ws.stat('a', { signal }),
  digest: (ws, signal) => ws.digest('a', { signal }),
  remove: (ws, signal) => ws.remove('a', { signal }),
  makeDirectory: (ws, signal) => ws.makeDirectory('a', { signal }),
  list: (ws, signal) => all(ws.list('', { signal })),
  get: (ws, signal) => ws.get('a', { signal }),
  read: (ws, signal) => all(ws.read('a', { signal })),
  collect: (ws, signal) => all(ws.collect('**', { signal })),
}

describe.each(Object.entries(CALLS))('%s', (_, call) => {
  test('settles when it is aborted, and when the workspace closes', async () => {
    const fake = silent()
    const controller = new AbortController()
    const aborted = codeOf(call(fake.ws, controller.signal))
    const closed = codeOf(call(fake.ws, new AbortController().signal))
    await new Promise(setImmediate)
    controller.abort()
    expect(await aborted).toBe('aborted')
    await fake.ws.close()
    expect(await closed).toBe('workspace_closed')
  })
})

test('the error of a callback is the outcome also when the program has ended, and it is not called again', async () => {
  const fake = silent()
  let calls = 0
  const onOutput = async (): Promise<never> => {
    calls += 1
    await new Promise(setImmediate)
    throw new RangeError('enough')
  }
  fake.answer = ({ type, execution_id: id }) => {
    if (type !== 'start') return
    fake.frames({ type: 'started', execution_id: id, pid: 7 })
    for (const text of 'abc') fake.output(id, 'stdout', text)
    fake.done(id)
  }
  await expect(fake.ws.exec('true', [], { onOutput })).rejects.toThrow(RangeError)
  expect(calls).toBe(1)
  await fake.ws.close()
})

test('a source that nobody needs any more is left', async () => {
  const fake = silent()
  let isLeft = false
  const stdin = (async function* (): AsyncGenerator<string, void, void> {
    try {
      for (;;) {
        yield 'x'
        await new Promise(setImmediate)
      }
    } finally {
      isLeft = true
    }
  })()
  await fake.ws.exec('true', [], { stdin })
  for (let turns = 0; turns < 100 && !isLeft; turns += 1) await new Promise(setImmediate)
  expect(isLeft).toBe(true)
  await fake.ws.close()
})
