import { describe, expect, test, vi } from 'vitest'
import type { SharedChannel } from '../../../src/executor/index.ts'
import { encodeExecute } from '../../../src/protocol/index.ts'
import { FakeWorkspace, type HostSaid, obedient } from '../../support/fake-workspace.ts'

const EXITED = { cause: 'exit', exitCode: 1, signal: null, by: 'harness' } as const
const KiB = 1024

describe('what comes from a sandbox', () => {
  test('reaches the activity that it names; frames of no activity and broken ones are left out', async () => {
    const fake = new FakeWorkspace()
    fake.answer = obedient()
    const [one, two] = await Promise.all([fake.ws.start('one'), fake.ws.start('two')])
    fake.output('nobody', 'stdout', 'lost')
    fake.output(two.id, 'stdout', 'for two')
    fake.output(two.id, 'no such stream', 'lost')
    fake.bytes('no json\n[1]\n{"type":"output_end"}\n')
    fake.frames({ type: 'output', execution_id: two.id, stream: 'stdout' }, { type: 'unknown', execution_id: two.id })
    fake.frames({ type: 'started', execution_id: one.id, pid: -1 })
    fake.output(one.id, 'stdout', 'for one')
    expect([(await one.poll({ waitMs: 900 })).text, (await two.poll({ waitMs: 900 })).text]).toEqual([
      'for one',
      'for two',
    ])
    await fake.ws.close()
  })

  test('a second id in a line does not bring it to another activity', async () => {
    const fake = new FakeWorkspace()
    fake.answer = obedient()
    const [one, two] = await Promise.all([fake.ws.start('one'), fake.ws.start('two')])
    fake.bytes(`{"type":"activity_done","execution_id":"${one.id}","confirmed":true,"execution_id":"${two.id}"}\n`)
    fake.output(one.id, 'stdout', 'alive')
    expect((await one.poll({ waitMs: 900 })).text).toBe('alive')
    expect([one.status, two.status]).toEqual(['running', 'running'])
    await fake.ws.close()
  })

  test.each([
    ['a payload that is too large', '{"payload":65537,"type":"output"}\n'],
    ['a negative payload', '{"payload":-1,"type":"output"}\n'],
    ['an endless header', `{"payload":1,${'x'.repeat(5000)}`],
    ['an endless line', 'x'.repeat(5 * 1024 * KiB)],
  ])('%s ends the workspace', async (_, bytes) => {
    const fake = new FakeWorkspace()
    fake.answer = obedient()
    const program = await fake.ws.start('cat')
    fake.bytes(bytes)
    await expect(program.exited).rejects.toMatchObject({ code: 'workspace_lost' })
    expect(fake.isDestroyed).toBe(true)
    await expect(fake.ws.exec('true')).rejects.toMatchObject({ code: 'workspace_lost' })
    await fake.ws.close()
  })

  test('a sandbox that sends more than its window is lost', async () => {
    const fake = new FakeWorkspace()
    fake.answer = ({ type, execution_id: id }) => {
      if (type !== 'start') return
      fake.frames({ type: 'started', execution_id: id, pid: 7 })
    }
    const program = await fake.ws.start('flood')
    const reader = program.output[Symbol.asyncIterator]()
    const first = reader.next()
    for (let sent = 0; sent < 40; sent += 1) fake.output(program.id, 'stdout', new Uint8Array(64 * KiB))
    await first
    await expect(program.exited).rejects.toMatchObject({ code: 'workspace_lost' })
    expect(fake.isDestroyed).toBe(true)
  })

  test('when the channel ends, every activity settles with an error that says why', async () => {
    const fake = new FakeWorkspace()
    fake.answer = obedient()
    const program = await fake.ws.start('cat')
    const settled = Promise.allSettled([
      program.exited,
      fake.ws.exec('true'),
      fake.ws.stat('a'),
      fake.ws.get('a'),
      fake.ws.put({ a: 'b' }),
    ])
    fake.end({ ...EXITED, message: 'out of luck' })
    for (const { reason } of (await settled) as PromiseRejectedResult[])
      expect(reason).toMatchObject({
        code: 'workspace_lost',
        message:
          'the sandbox of the workspace is lost: its channel ended (exit: out of luck); open another one with sg.workspace()',
      })
    await fake.ws.close()
  })

  test('processes whose end is not confirmed cost the sandbox', async () => {
    const fake = new FakeWorkspace()
    fake.answer = ({ type, execution_id: id }) => type === 'start' && fake.done(id, { confirmed: false })
    await fake.ws.exec('fork-bomb')
    await expect(fake.ws.exec('true')).rejects.toMatchObject({ code: 'workspace_lost' })
    expect(fake.isDestroyed).toBe(true)
  })
})

describe('what goes to a sandbox', () => {
  test('input waits for credit, and a cancellation does not wait for input', async () => {
    const fake = new FakeWorkspace()
    fake.answer = obedient()
    const program = await fake.ws.start('cat')
    const written = program.write(new Uint8Array(512 * KiB))
    await until(() => sizeOf(fake.said) === 256 * KiB)
    fake.frames({ type: 'credit', execution_id: program.id, stream: 'stdin', bytes: 100 * KiB })
    await until(() => sizeOf(fake.said) === 356 * KiB)
    const closing = program.close()
    await expect(written).rejects.toMatchObject({ code: 'program_not_running' })
    await closing
    expect(fake.said.at(-1)).toMatchObject({ type: 'cancel' })
    await fake.ws.close()
  })

  test('activities take turns, a control frame waits behind one piece at most, and the end of input comes last', async () => {
    const fake = new FakeWorkspace()
    fake.answer = obedient()
    const [one, two] = await Promise.all([fake.ws.start('one'), fake.ws.start('two')])
    fake.said.length = 0
    const writes = [one.write(new Uint8Array(200 * KiB)), two.write(new Uint8Array(200 * KiB))]
    one.stdin.end()
    two.signal('SIGINT')
    await Promise.all(writes)
    await until(() => fake.said.some(({ type }) => type === 'input_end'))
    const order = fake.said.map(({ type, execution_id: id }) => `${id === one.id ? 'one' : 'two'} ${type}`)
    expect(order.indexOf('two signal')).toBeLessThanOrEqual(1)
    expect(order.filter((text) => text.endsWith('input')).slice(0, 4)).toEqual([
      'one input',
      'two input',
      'one input',
      'two input',
    ])
    expect(order.lastIndexOf('one input')).toBeLessThan(order.indexOf('one input_end'))
    await fake.ws.close()
  })

  test('credit is given when output was taken, and not before', async () => {
    const fake = new FakeWorkspace()
    fake.answer = obedient()
    const program = await fake.ws.start('flood')
    const reader = program.output[Symbol.asyncIterator]()
    const first = reader.next()
    for (let sent = 0; sent < 2; sent += 1) fake.output(program.id, 'stdout', new Uint8Array(64 * KiB))
    await first
    expect(fake.said.some(({ type }) => type === 'credit')).toBe(false)
    await reader.next()
    await until(() => fake.said.some(({ type }) => type === 'credit'))
    await reader.return?.()
    await fake.ws.close()
  })

  test('a request goes as one line up to its large fields, however long that is; they follow as input', async () => {
    const fake = new FakeWorkspace()
    const wish = { hasSecrets: true, shareSecrets: false, maxOutputBytes: 1000 }
    const { sandbox, executionId } = await fake.ws.borrow(wish)
    const head = {
      execution_id: executionId,
      mode: 'plan' as const,
      timeout_sec: 1,
      max_output_bytes: 1000,
      secrets: { KEY: 'k'.repeat(100 * KiB) },
      required_secrets: [],
      collect: [],
      limits: {},
    }
    const body = { script: 's'.repeat(10 * KiB), inputs: {} }
    await (sandbox.channel as SharedChannel).sendRequest(encodeExecute(head, body))
    const [first, ...pieces] = fake.said
    expect(first).toEqual({ type: 'execute_in_parts', ...head, body_bytes: JSON.stringify(body).length })
    expect(JSON.parse(pieces.map(({ payload = '' }) => payload).join(''))).toEqual(body)
    await fake.ws.close()
  })

  test('a request that is refused before all of it was sent is sent no further', async () => {
    const fake = new FakeWorkspace()
    const wish = { hasSecrets: false, shareSecrets: false, maxOutputBytes: 1000 }
    const { sandbox, executionId: execution_id } = await fake.ws.borrow(wish)
    const head = {
      execution_id,
      mode: 'plan' as const,
      timeout_sec: 1,
      max_output_bytes: 1000,
      secrets: {},
      required_secrets: [],
      collect: [],
      limits: {},
    }
    const body = { script: 's'.repeat(1024 * KiB), inputs: {} }
    const sent = (sandbox.channel as SharedChannel).sendRequest(encodeExecute(head, body))
    fake.frames({ type: 'script_done', execution_id })
    await sent
    expect(fake.said.length).toBeLessThan(10)
    await fake.ws.close()
  })

  test('a sandbox that does not confirm a cancellation is lost within a second', async () => {
    const fake = new FakeWorkspace()
    fake.answer = ({ type, execution_id: id }) =>
      type === 'start' && fake.frames({ type: 'started', execution_id: id, pid: 7 })
    const program = await fake.ws.start('deaf')
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const closed = program.close()
      await vi.advanceTimersByTimeAsync(999)
      expect(fake.isDestroyed).toBe(false)
      await vi.advanceTimersByTimeAsync(1)
      await closed
    } finally {
      vi.useRealTimers()
    }
    expect(fake.isDestroyed).toBe(true)
  })
})

describe('secrets where activities are not apart', () => {
  const secrets = { KEY: 'sesame-open' }

  test('are refused beside other activities, in either order, unless the caller shares them', async () => {
    const fake = new FakeWorkspace({ trust: 'shared' })
    fake.answer = obedient()
    const other = await fake.ws.start('other')
    await expect(fake.ws.exec('true', [], { secrets })).rejects.toMatchObject({ code: 'secrets_not_separate' })
    const shared = await fake.ws.start('true', [], { secrets, shareSecrets: true })
    await Promise.all([other.close(), shared.close()])
    const alone = await fake.ws.start('alone', [], { secrets })
    await expect(fake.ws.start('true')).rejects.toMatchObject({ code: 'secrets_not_separate' })
    await alone.close()
    await (await fake.ws.start('true')).close()
    await fake.ws.close()
  })

  test('are given where activities are apart', async () => {
    const fake = new FakeWorkspace()
    fake.answer = obedient()
    await fake.ws.start('other')
    const program = await fake.ws.start('true', [], { secrets })
    expect(program.status).toBe('running')
    await fake.ws.close()
  })
})

function sizeOf(said: readonly HostSaid[]): number {
  return said.reduce((sum, { payload = '' }) => sum + payload.length, 0)
}

/** Lets everything that is due happen, until something is true. */
async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise(setImmediate)
}
