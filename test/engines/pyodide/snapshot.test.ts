import { createHash } from 'node:crypto'
import { copyFileSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync, chmodSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import {
  HEAD_BYTES,
  partsOf,
  snapshotBytes,
  withMachineCode,
} from '../../../src/engines/pyodide/guest/snapshot-parts.ts'
import { engineAt, place, runOn, SPEC } from './bed.ts'

const snapshotsIn = (directory: string): string[] =>
  readdirSync(directory).filter((name) => name.startsWith('pyodide-'))

const first = place()
afterAll(() => first[Symbol.dispose]())

/** A place with a snapshot, which is made once for all of them. */
async function filled(): Promise<ReturnType<typeof place>> {
  const cache = place()
  if (snapshotsIn(first.path).length === 0) await runOn(engineAt(first.path), '')
  for (const name of snapshotsIn(first.path)) copyFileSync(join(first.path, name), join(cache.path, name))
  return cache
}

test('the snapshot is made once, also when many want it at the same time, and used from then on', async () => {
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

test.each([
  ['cut short', (path: string) => truncateSync(path, 1_000_000)],
  ['empty', (path: string) => truncateSync(path, 0)],
  ['changed in one byte of the memory', (path: string) => flip(path, partsOf(readFileSync(path)).memory + 4_000_000)],
  [
    'changed in one byte of the machine code',
    (path: string) => flip(path, partsOf(readFileSync(path)).machineCode + 64),
  ],
  ['changed in one byte of the compiled code', (path: string) => flip(path, 500_000)],
  ['wrong about the length of the compiled code', (path: string) => flip(path, 3)],
])('a snapshot that is %s is made anew', async (_how, damage) => {
  using cache = await filled()
  const path = join(cache.path, snapshotsIn(cache.path)[0] ?? '')
  damage(path)
  expect(isWhole(path)).toBe(false)
  expect((await runOn(engineAt(cache.path), 'emit_result("whole")')).finalData).toBe('whole')
  expect(isWhole(path)).toBe(true)
})

test('a snapshot that others could have written is not used', async () => {
  using cache = await filled()
  const path = join(cache.path, snapshotsIn(cache.path)[0] ?? '')
  const before = statSync(path).ino
  chmodSync(path, 0o666)
  expect((await runOn(engineAt(cache.path), 'emit_result(1)')).finalData).toBe(1)
  expect(statSync(path).ino).not.toBe(before)
})

test('where nothing can be kept, scripts run all the same', async () => {
  expect((await runOn(engineAt('/dev/null/place'), 'emit_result("in memory")')).finalData).toBe('in memory')
})

/** Writes what is a whole snapshot, but with other machine code in it. */
function putMachineCode(path: string, code: Uint8Array): void {
  const bytes = readFileSync(path).subarray(0, -32)
  const at = partsOf(bytes)
  const without = snapshotBytes(bytes.subarray(HEAD_BYTES, at.machineCode), bytes.subarray(at.memory))
  const body = withMachineCode(without, code)
  writeFileSync(path, Buffer.concat([body, createHash('sha256').update(body).digest()]))
}

const checksOf = async (cacheDir: string): Promise<Readonly<Record<string, unknown>>> => {
  await using sandbox = await engineAt(cacheDir).create(SPEC)
  return sandbox.ready.checks
}

test('instances go on from compiled JavaScript and machine code, whatever memory they may have', async () => {
  using cache = await filled()
  expect(await checksOf(cache.path)).toMatchObject({ code_from_cache: true, machine_code: true })
  const small = await engineAt(cache.path).create({ limits: { ...SPEC.limits, memoryBytes: 96 * 1024 * 1024 } })
  expect(small.ready.checks['machine_code']).toBe(true)
  await small.destroy()
})

test.each([
  ['is no machine code', new Uint8Array(100_000).fill(7)],
  ['is missing', new Uint8Array()],
])('where what V8 is given %s, it compiles as ever', async (_how, code) => {
  using cache = await filled()
  putMachineCode(join(cache.path, snapshotsIn(cache.path)[0] ?? ''), code)
  expect((await checksOf(cache.path))['machine_code']).toBe(false)
  expect((await runOn(engineAt(cache.path), 'emit_result(sum(range(10)))')).finalData).toBe(45)
})

test('machine code of another version of V8 is refused', async () => {
  using cache = await filled()
  const path = join(cache.path, snapshotsIn(cache.path)[0] ?? '')
  const bytes = readFileSync(path)
  const at = partsOf(bytes)
  const code = Uint8Array.from(bytes.subarray(at.machineCode, at.memory))
  code[5] = (code[5] ?? 0) ^ 1 // the second word of its head is V8's version
  putMachineCode(path, code)
  expect((await checksOf(cache.path))['machine_code']).toBe(false)
})
