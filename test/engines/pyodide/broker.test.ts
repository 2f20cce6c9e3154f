import { expect, test } from 'vitest'
import { Broker } from '../../../src/engines/pyodide/broker.ts'
import { startGuest } from '../../../src/engines/pyodide/guest-process.ts'
import { ScriptExecutor } from '../../../src/executor/index.ts'
import type { Ending, Sandbox } from '../../../src/sandbox/index.ts'
import { SPEC } from './bed.ts'

const DESTROYED: Ending = { cause: 'destroyed', exitCode: null, signal: null, by: 'host' }

/** A guest as the broker sees it, which runs nothing: it says that its script ended, and then more than anybody reads. */
const TALKATIVE = `
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
say({ type: 'ended', exitCode: 0, fault: null })
for (const fd of [3, 4, 5]) closeSync(fd)
say({ type: 'collected', limitsHit: [], skipped: [] })
for (;;) say({ type: 'more', text: 'x'.repeat(60_000) })
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

test('what a guest goes on saying when its run is over holds no end up', async () => {
  const broker = new Broker({
    start: () => startGuest({ program: process.execPath, args: ['--eval', TALKATIVE] }, START),
    startTimeoutMs: 20_000,
  })
  const ready = await broker.start()
  const destroy = (): Promise<void> => broker.end(DESTROYED)
  const sandbox: Sandbox = {
    id: 'talkative',
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
  const { ending } = await new ScriptExecutor({ mode: 'interactive' }).run({ sandbox, script: '' })
  expect(ending).toEqual({ cause: 'exit', exitCode: 0, signal: null, by: 'script' })
  await sandbox.destroy()
  expect((await broker.closed).cause).toBe('destroyed')
  await broker.recovered() // settles also when all is over
}, 30_000)
