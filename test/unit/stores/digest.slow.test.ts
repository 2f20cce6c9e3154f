import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { storeInDirectory, storeInMemory } from '../../../src/artifacts/index.ts'
import { leastOf } from '../../../src/testing/conformance/least-of.ts'

const MiB = 1024 ** 2
const DOOR = join(import.meta.dirname, '../../../src/artifacts/index.ts')
/** One buffer, which the source uses again and again. */
async function* pieces(count: number, buffer: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < count; at++) yield buffer.fill(at)
}

async function sha256Of(content: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of content) hash.update(piece)
  return hash.digest('hex')
}

function threadMs(since?: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(since)
  return (user + system) / 1000
}

test('the thread of the host does not hash large content', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'store-'))
  try {
    const store = storeInDirectory(directory)
    const buffer = new Uint8Array(MiB)
    // The first content starts the other thread.
    await store.put('a', pieces(8, buffer))
    const partOfHashing = async (): Promise<number> => {
      const hash = createHash('sha256')
      const beforeHash = process.threadCpuUsage()
      for (let at = 0; at < 256; at++) hash.update(buffer)
      const hashing = threadMs(beforeHash)
      const beforePut = process.threadCpuUsage()
      const { sha256 } = await store.put('a', pieces(256, buffer))
      const putting = threadMs(beforePut)
      const beforeRead = process.threadCpuUsage()
      for await (const piece of (await store.open('a', sha256)) ?? []) expect(piece).toBeInstanceOf(Uint8Array)
      const reading = threadMs(beforeRead)
      return Math.max(putting, reading) / hashing
    }
    expect(await leastOf(3, 1, partOfHashing)).toBeLessThan(1)
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('a directory keeps what was hashed, of several contents at once, whose sources use one buffer each', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'store-'))
  try {
    const store = storeInDirectory(directory)
    const counts = [23, 40, 9, 31]
    const expected = counts.map((count) => {
      const hash = createHash('sha256')
      for (let at = 0; at < count; at++) hash.update(Buffer.alloc(MiB + 1, at))
      return hash.digest('hex')
    })
    for (let round = 0; round < 3; round++) {
      const stored = await Promise.all(counts.map((count) => store.put('a', pieces(count, new Uint8Array(MiB + 1)))))
      expect(stored.map(({ sha256 }) => sha256)).toEqual(expected)
      for (const { sha256 } of stored)
        expect(await sha256Of((await store.open('a', sha256)) ?? (async function* () {})())).toBe(sha256)
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('a large file is kept as it is', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'store-'))
  try {
    const store = storeInDirectory(join(directory, 'store'))
    const path = join(directory, 'file')
    const content = Buffer.concat(Array.from({ length: 23 }, (_, at) => Buffer.alloc(MiB + 1, at)))
    writeFileSync(path, content)
    const { sha256, size } = await store.put('a', { path })
    expect({ sha256, size }).toEqual({
      sha256: createHash('sha256').update(content).digest('hex'),
      size: content.length,
    })
    const pieces = await Array.fromAsync((await store.open('a', sha256)) ?? [])
    expect(Buffer.concat(pieces).equals(content)).toBe(true)
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test.each([0, 1, 3 * MiB, 4 * MiB, 4 * MiB + 1, 9 * MiB + 7])(
  '%i bytes have their digest, in any pieces',
  async (size) => {
    const store = storeInMemory()
    const content = Buffer.from(Array.from({ length: 251 }, (_, at) => at))
    const whole = Buffer.alloc(size, content)
    const expected = createHash('sha256').update(whole).digest('hex')
    const cut = async function* (pieceBytes: number): AsyncGenerator<Uint8Array> {
      for (let at = 0; at < size; at += pieceBytes) yield whole.subarray(at, at + pieceBytes)
    }
    for (const given of [whole, cut(65_537), cut(MiB), cut(5 * MiB)])
      expect(await store.put('a', given)).toEqual({ sha256: expected, size })
  },
)

test('contents that are stored at once do not mix', async () => {
  const store = storeInMemory()
  const sizes = [5, 6, 7, 8, 9, 10]
  const stored = await Promise.all(sizes.map(async (size) => store.put('a', pieces(size, new Uint8Array(MiB)))))
  const expected = await Promise.all(sizes.map(async (size) => sha256Of(pieces(size, new Uint8Array(MiB)))))
  expect(stored.map(({ sha256 }) => sha256)).toEqual(expected)
})

const SAVE = `import { createArtifactService, storeInMemory } from ${JSON.stringify(DOOR)}
const artifacts = createArtifactService(storeInMemory())
const { size, sha256 } = await artifacts.save('a', new Uint8Array(8 * 1024 ** 2))
console.log(size, sha256)`
const SAVED = `8388608 ${createHash('sha256')
  .update(Buffer.alloc(8 * MiB))
  .digest('hex')}`

/** Says how many milliseconds the process lived on. */
const END = `const left = performance.now()
process.on('exit', () => console.log(performance.now() - left))`

/** What a program prints. It must end soon after its last statement. */
function nodeOutput(code: string, ...flags: string[]): string {
  const args = [...flags, '--input-type=module', '-e', `${code}\n${END}`]
  const { stdout, stderr, signal } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 30_000 })
  expect({ signal, stderr }).toEqual({ signal: null, stderr: '' })
  const [livedOnMs = '', ...printed] = stdout.trimEnd().split('\n').toReversed()
  expect(livedOnMs).toMatch(/^[0-9.]+$/)
  expect(Number(livedOnMs)).toBeLessThan(5000)
  return printed.toReversed().join('\n')
}

test('a process ends at once after it stored large content, also if it reads content not to its end', () => {
  expect(nodeOutput(SAVE)).toBe(SAVED)
  const leave = `const { stream } = await artifacts.open('a')
await stream.getReader().read()`
  expect(nodeOutput(`${SAVE}\n${leave}`)).toBe(SAVED)
})

test('a process that may start no thread hashes by itself', () => {
  expect(nodeOutput(SAVE, '--permission', '--allow-fs-read=*')).toBe(SAVED)
})
