import { expect, onTestFinished, test, vi } from 'vitest'
import { FakeWorkspace, obedient } from '../../support/fake-workspace.ts'

test.each<[string, string, (fake: FakeWorkspace, id: string) => void]>([
  ['the connection', 'connect', (fake, id) => fake.frames({ type: 'dialed', execution_id: id })],
  ['data', 'data', (fake, id) => fake.output(id, 'socket', 'hi')],
  // Without data, a stream emits it for its end at once.
  [
    'the end of the output',
    'readable',
    (fake, id) => fake.frames({ type: 'output_end', execution_id: id, stream: 'socket' }),
  ],
  ['the end of the connection', 'readable', (fake, id) => fake.done(id)],
])(
  'a listener for %s that throws ends its connection alone, and its error is an uncaught one',
  async (_, event, dialed) => {
    const uncaught: unknown[] = []
    process.setUncaughtExceptionCaptureCallback((error) => uncaught.push(error))
    onTestFinished(() => process.setUncaughtExceptionCaptureCallback(null))
    const fake = new FakeWorkspace()
    const answer = obedient('end')
    fake.answer = (said) => {
      // When the stream is being read, so that it calls the listener at once.
      if (said.type === 'dial') setImmediate(() => dialed(fake, said.execution_id))
      else answer(said, fake)
    }
    const failure = new RangeError('a mistake in a listener')
    const errors: unknown[] = []
    const connection = fake.ws.dial(8080)
    connection.on('error', (error) => errors.push(error))
    connection.on(event, () => {
      throw failure
    })
    await vi.waitUntil(() => errors.length > 0, { timeout: 10_000 })
    expect([errors, uncaught]).toEqual([[failure], [failure]])
    expect((await fake.ws.exec('true')).exitCode).toBe(0)
    await fake.ws.close()
  },
)
