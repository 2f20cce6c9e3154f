import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { prepare, type Ground } from '../../../src/engines/pyodide/ground.ts'
import { pyodideEngine } from '../../../src/engines/pyodide/index.ts'
import { answerCalls, makeSnapshot } from '../../../src/engines/pyodide/snapshot-maker.ts'
import { eventually } from '../../support/eventually.ts'
import { place } from './bed.ts'

/** A guest that makes a snapshot of a few bytes, and then, when it is to run the training script, does this. */
const guestThat = (trains: string): string => `
const { readSync, writeSync } = require('node:fs')
const say = (message) => writeSync(6, JSON.stringify(message) + '\\n')
const head = Buffer.alloc(4)
readSync(0, head, 0, 4, null)
const text = Buffer.alloc(head.readUInt32LE(0))
for (let at = 0; at < text.length; ) at += readSync(0, text, at, text.length - at, null)
if (JSON.parse(text.toString()).task === 'snapshot') {
  say({ type: 'made', bytes: 16 })
  writeSync(3, Buffer.alloc(16))
} else {
  ${trains}
}
process.exit(0)
`

/** Where guests are started that do this when they are to be trained. */
function groundAt(directory: string, trains: string): Ground {
  const guest = join(directory, 'guest.cjs')
  writeFileSync(guest, guestThat(trains))
  return { ...prepare({ cacheDir: join(directory, 'cache'), bubblewrap: false }), guest }
}

const keptBelow = (directory: string): number => {
  try {
    return readdirSync(join(directory, 'cache')).length
  } catch {
    return 0
  }
}

test('a snapshot with machine code is kept', async () => {
  using at = place()
  const trains = `say({ type: 'no-machine-code', reason: 'not yet' })
  say({ type: 'made', bytes: 3 })
  writeSync(5, 'abc')`
  const ground = groundAt(at.path, trains)
  expect(await makeSnapshot(ground, 20_000)).toEqual({ path: ground.cache.pathOf(ground.key) })
})

test.each([
  ['says so', `say({ type: 'no-machine-code', reason: 'none here' })`, 'none here (exit code 0)'],
  [
    'ends by it',
    `say({ type: 'no-machine-code', reason: 'none here' }); process.kill(process.pid, 'SIGTRAP')`,
    'none here (SIGTRAP)',
  ],
])('where a V8 gives no machine code and %s, the snapshot is kept without', async (_how, trains, why) => {
  using at = place()
  const ground = groundAt(at.path, trains)
  expect(await makeSnapshot(ground, 20_000)).toEqual({ path: ground.cache.pathOf(ground.key), untrained: why })
})

test.each([
  ['fails', 'process.exit(7)', 20_000, '(exit code 7): it said nothing'],
  [
    'is killed',
    `say({ type: 'no-machine-code', reason: 'x' }); process.kill(process.pid, 'SIGKILL')`,
    20_000,
    '(SIGKILL): it said nothing',
  ],
  ['takes too long', 'setInterval(() => {}, 1000); return', 3000, '(SIGKILL): it said nothing'],
])('a snapshot whose training %s serves now, and is not kept', async (_how, trains, timeoutMs, why) => {
  using at = place()
  expect(await makeSnapshot(groundAt(at.path, trains), timeoutMs)).toEqual({
    bytes: Buffer.alloc(16),
    untrained: why,
  })
  expect(keptBelow(at.path)).toBe(0)
})

test('a snapshot for whose training no process can be started serves now, and is not kept', async () => {
  using at = place()
  const ground = groundAt(at.path, '')
  let asked = 0
  const box = (): ReturnType<Ground['box']> => {
    asked += 1
    return asked === 1 ? ground.box() : Promise.reject(new Error('spawn EMFILE'))
  }
  expect(await makeSnapshot({ ...ground, box }, 20_000)).toEqual({
    bytes: Buffer.alloc(16),
    untrained: 'spawn EMFILE',
  })
  expect(keptBelow(at.path)).toBe(0)
})

test.each([
  ['no frame', 'junk\n'],
  ['a line that has no end', 'x'.repeat(2 * 1024 * 1024)],
])('a guest in training that says %s is killed, and nothing else is harmed', async (_what, said) => {
  const frames = new PassThrough()
  let killed = 0
  answerCalls({ frames, sendToScript: () => {}, kill: () => void (killed += 1) })
  frames.write(said)
  expect(await eventually(() => (killed > 0 ? undefined : 'it lives'), 5000)).toBe(undefined)
})

test('the report says when instances have machine code', async () => {
  using at = place()
  const { probes } = await pyodideEngine({ cacheDir: at.path }).report()
  expect([probes['machine_code'], probes['machine_code_missing'], probes['snapshot_cached']]).toEqual([
    true,
    undefined,
    true,
  ])
})
