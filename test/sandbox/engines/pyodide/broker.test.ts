import { expect, test } from 'vitest'
import { z } from 'zod'
import { Broker } from '../../../../src/engines/pyodide/broker.ts'
import type { GuestProcess } from '../../../../src/engines/pyodide/guest-interface.ts'
import { startGuest } from '../../../../src/engines/pyodide/guest-process.ts'
import { type ExecutionResult, type RunRequest, ScriptExecutor } from '../../../../src/executor/index.ts'
import type { Ending, Sandbox } from '../../../../src/sandbox/index.ts'
import { bridgedTools, defineTool, prepareTools } from '../../../../src/tools/index.ts'
import { SPEC } from './fixture.ts'

const DESTROYED: Ending = { cause: 'destroyed', exitCode: null, signal: null, by: 'host' }

/** A fake guest that runs nothing: it does what is `before`, reports the end of its script, and then sends `more`. */
const guestThat = (more: string, before = ''): string => `
const { closeSync, readSync, writeSync } = require('node:fs')
const say = (message) => writeSync(6, JSON.stringify(message) + '\\n')
const exactly = (count) => {
  const bytes = Buffer.alloc(count)
  for (let at = 0; at < count; ) {
    const got = readSync(0, bytes, at, count - at, null)
    if (got === 0) process.exit(0)
    at += got
  }
  return bytes
}
const message = () => exactly(exactly(4).readUInt32LE(0))
const loaded = { tools: { loaded: [], failed: [] }, preload: { loaded: [], failed: [], deferred: [] } }
say({ type: 'ready', python: '3.14.2', loaded, checks: {} })
for (let n = 0; n < 3; n += 1) message() // its start, the run, the script
${before}
say({ type: 'ended', exitCode: 0, fault: null })
for (const fd of [3, 4, 5]) closeSync(fd)
${more}
`

const START = {
  type: 'start',
  task: 'serve',
  pyodide: '',
  snapshot: null,
  files: [],
  fileBytes: 0,
  limits: { memoryBytes: 0, scratch: {} },
  workspace: '/',
  harness: '/',
  config: {},
  modules: [],
} as const

/** A sandbox whose instances are such guests. */
async function sandboxOf(program: string, onGuest: (guest: GuestProcess) => void = () => undefined): Promise<Sandbox> {
  const start = (): GuestProcess => {
    const guest = startGuest({ program: process.execPath, args: ['--eval', program] }, START)
    onGuest(guest)
    return guest
  }
  const broker = new Broker({ start, startTimeoutMs: 20_000 })
  const ready = await broker.start()
  const destroy = async (): Promise<void> => {
    await broker.end(DESTROYED)
    await broker.closed
  }
  return {
    id: 'told',
    info: {
      engine: 'pyodide',
      level: 'language-only',
      python: '3.14.2',
      network: 'language-only',
      limitsEnforced: [],
      limits: SPEC.limits,
    },
    channel: broker.channel,
    ready,
    closed: broker.closed,
    memoryKills: () => null,
    recovered: () => broker.recovered(),
    destroy,
    [Symbol.asyncDispose]: destroy,
  }
}

const run = (sandbox: Sandbox, request: Partial<RunRequest> = {}): Promise<ExecutionResult> =>
  new ScriptExecutor({ mode: 'interactive' }).run({ ...request, sandbox, script: '' })

test('a guest that goes on sending after its run does not delay the end', async () => {
  const sandbox = await sandboxOf(
    guestThat(`say({ type: 'collected', limitsHit: [], skipped: [] })
for (;;) say({ type: 'more', text: 'x'.repeat(60_000) })`),
  )
  expect((await run(sandbox)).ending).toEqual({ cause: 'exit', exitCode: 0, signal: null, by: 'script' })
  await sandbox.destroy()
  expect((await sandbox.closed).cause).toBe('destroyed')
  await sandbox.recovered?.() // settles also when all is over
}, 30_000)

test('a guest that asks to be woken and never reads takes no memory of the host', async () => {
  let most = 0
  const flood = `const asks = '{"type":"wake","after":0}\\n'.repeat(2000)
for (let n = 0; n < 50; n += 1) writeSync(3, asks)`
  await using sandbox = await sandboxOf(
    guestThat(`say({ type: 'collected', limitsHit: [], skipped: [] })`, flood),
    (guest) => guest.frames.on('data', () => (most = Math.max(most, guest.unsentBytes))),
  )
  const tool = defineTool({ name: 't', description: 'T.', input: z.object({}), effect: 'read', execute: () => 1 })
  await run(sandbox, { tools: bridgedTools(prepareTools([tool])) })
  expect(most).toBeLessThan(1024) // of 100,000 messages of 4 bytes
}, 30_000)

test.each([
  ['without its fields', `{ type: 'collected' }`],
  ['with fields that are something else', `{ type: 'refused', path: 7, reason: 7 }`],
])(
  'a message of a guest %s ends the sandbox, and nothing else',
  async (_what, word) => {
    await using sandbox = await sandboxOf(guestThat(`say(${word}); readSync(0, Buffer.alloc(1))`))
    const { status, ending } = await run(sandbox)
    expect([status, ending.by]).toEqual(['sandbox-lost', 'harness'])
    expect((await sandbox.closed).message).toMatch(/^an instance broke the protocol: /)
  },
  30_000,
)
