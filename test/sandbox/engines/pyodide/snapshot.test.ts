import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
  chmodSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { type EngineEnvironment, findEnvironment } from '../../../../src/engines/pyodide/environment.ts'
import { makeSnapshot } from '../../../../src/engines/pyodide/snapshot-maker.ts'
import { sharedCache } from '../../../support/engines/pyodide/shared-cache.ts'
import { engineAt, place, runOn, SPEC } from './fixture.ts'

const snapshotsIn = (directory: string): string[] =>
  readdirSync(directory).filter((name) => name.startsWith('pyodide-'))

/** The path of this process's snapshot. That of a host that runs the library from TypeScript has another key. */
function snapshotIn(directory: string): string {
  const { cache, key } = findEnvironment({ cacheDir: directory })
  return cache.pathOf(key)
}

const first = sharedCache()
afterAll(() => first[Symbol.dispose]())

/** A cache directory with a copy of this test run's snapshot. */
async function fillCache(): Promise<ReturnType<typeof place>> {
  const cache = place()
  if (!existsSync(snapshotIn(first.path))) await runOn(engineAt(first.path), '')
  copyFileSync(snapshotIn(first.path), snapshotIn(cache.path))
  return cache
}

test('the snapshot is made once, even when many need it at the same time, and then reused', async () => {
  using cache = place()
  const engines = [engineAt(cache.path), engineAt(cache.path)]
  const results = await Promise.all(engines.map((engine) => runOn(engine, 'emit_result(6 * 7)')))
  expect(results.map(({ finalData }) => finalData)).toEqual([42, 42])
  const [name = '', ...others] = snapshotsIn(cache.path)
  expect(others).toEqual([])
  const { mtimeMs, size } = statSync(join(cache.path, name))
  writeFileSync(join(cache.path, 'marker'), '')
  expect((await runOn(engineAt(cache.path), 'emit_result(1)')).finalData).toBe(1)
  expect(snapshotsIn(cache.path)).toEqual([name])
  expect(statSync(join(cache.path, name)).size).toBe(size)
  expect(statSync(join(cache.path, name)).mtimeMs).toBeGreaterThanOrEqual(mtimeMs)
})

/** Its last 32 bytes are the digest of the others. */
const isWhole = (path: string): boolean => {
  const bytes = readFileSync(path)
  return createHash('sha256').update(bytes.subarray(0, -32)).digest().equals(bytes.subarray(-32))
}

const flip = (path: string, at: number): void => {
  const bytes = readFileSync(path)
  bytes[at] = (bytes[at] ?? 0) ^ 0xff
  writeFileSync(path, bytes)
}

/** The compiled code, whose length the first four bytes are, lies before the memory. */
const memoryStart = (path: string): number => 4 + readFileSync(path).readUInt32LE()

// Other kinds of damage are in test/unit/engines/pyodide/snapshot-cache.test.ts: to make a snapshot takes seconds.
test.each([
  ['cut short', (path: string) => truncateSync(path, 1_000_000)],
  ['changed in one byte of the memory', (path: string) => flip(path, memoryStart(path) + 4_000_000)],
])('a snapshot that is %s is replaced', async (_how, damage) => {
  using cache = await fillCache()
  const path = snapshotIn(cache.path)
  damage(path)
  expect(isWhole(path)).toBe(false)
  expect((await runOn(engineAt(cache.path), 'emit_result("whole")')).finalData).toBe('whole')
  expect(isWhole(path)).toBe(true)
})

test('a snapshot that others could have written is not used', async () => {
  using cache = await fillCache()
  const path = snapshotIn(cache.path)
  const before = statSync(path).ino
  chmodSync(path, 0o666)
  expect((await runOn(engineAt(cache.path), 'emit_result(1)')).finalData).toBe(1)
  expect(statSync(path).ino).not.toBe(before)
})

test('scripts run even if no snapshot can be stored', async () => {
  expect((await runOn(engineAt('/dev/null/place'), 'emit_result("in memory")')).finalData).toBe('in memory')
})

test('instances start from compiled JavaScript with any memory limit', async () => {
  using cache = await fillCache()
  for (const memoryBytes of [SPEC.limits.memoryBytes, 96 * 1024 * 1024]) {
    await using sandbox = await engineAt(cache.path).create({ limits: { ...SPEC.limits, memoryBytes } })
    expect(sandbox.ready.checks).toMatchObject({ code_from_cache: true })
  }
})

/** An environment whose guest runs this code after it has read its first message. */
function environmentWith(directory: string, does: string): EngineEnvironment {
  const guest = join(directory, 'guest.cjs')
  writeFileSync(
    guest,
    `const { writeSync } = require('node:fs')
const say = (message) => writeSync(6, JSON.stringify(message) + '\\n')
${does}`,
  )
  return { ...findEnvironment({ cacheDir: join(directory, 'cache'), bubblewrap: false }), guest }
}

const keptBelow = (directory: string): number => {
  try {
    return readdirSync(join(directory, 'cache')).length
  } catch {
    return 0
  }
}

test('the bytes that a guest makes are kept', async () => {
  using at = place()
  const environment = environmentWith(at.path, `say({ type: 'snapshot', bytes: 16 }); writeSync(3, Buffer.alloc(16))`)
  expect(await makeSnapshot(environment, 20_000)).toEqual({ path: environment.cache.pathOf(environment.key) })
  expect(keptBelow(at.path)).toBe(1)
})

test.each([
  ['fails', 'process.exit(7)', 20_000, '(exit code 7): its stderr is empty'],
  ['is killed', `process.kill(process.pid, 'SIGKILL')`, 20_000, '(SIGKILL): its stderr is empty'],
  ['prints a reason', `console.error('no room'); process.exit(1)`, 20_000, '(exit code 1): no room'],
  ['takes too long', 'setInterval(() => {}, 1000)', 500, '(SIGKILL): its stderr is empty'],
  [
    'writes less than it says',
    `say({ type: 'snapshot', bytes: 17 }); writeSync(3, Buffer.alloc(16))`,
    20_000,
    '(exit code 0): its stderr is empty',
  ],
])('no snapshot is kept of a guest that %s', async (_how, does, timeoutMs, why) => {
  using at = place()
  await expect(makeSnapshot(environmentWith(at.path, does), timeoutMs)).rejects.toMatchObject({
    code: 'harness_start_failed',
    message: `Pyodide could not be loaded ${why}`,
  })
  expect(keptBelow(at.path)).toBe(0)
})

test('the report says whether the snapshot is cached', async () => {
  using cache = await fillCache()
  const { probes } = await engineAt(cache.path).report()
  expect(probes['snapshot_cached']).toBe(true)
})
