import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createArtifactService, storeInDirectory } from '../../../src/artifacts/index.ts'
import { collectGarbage } from '../../support/memory.ts'

const MiB = 1024 ** 2
const PIECES = 256
/** MiB between two collections: what was passed on waits for the collector, which is late on a busy machine. */
const COLLECTED_EVERY = 16

test('a stream of 256 MiB goes in and out without memory of its size', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'store-'))
  try {
    const artifacts = createArtifactService(storeInDirectory(directory))
    let peak = 0
    let looks = 0
    const look = (): void => {
      if ((looks += 1) % COLLECTED_EVERY === 0) collectGarbage()
      peak = Math.max(peak, process.memoryUsage().arrayBuffers)
    }
    collectGarbage()
    async function* pieces(): AsyncGenerator<Uint8Array> {
      for (let at = 0; at < PIECES; at++) {
        look()
        yield new Uint8Array(MiB).fill(at)
      }
    }
    const before = process.memoryUsage().arrayBuffers
    await artifacts.save('large', pieces())
    const { stream } = await artifacts.open('large')
    let size = 0
    for await (const piece of stream) {
      look()
      size += piece.byteLength
    }
    expect(size).toBe(PIECES * MiB)
    expect((peak - before) / MiB).toBeLessThan(100)
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('an artifact that is loaded takes memory of its size once', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'store-'))
  try {
    const artifacts = createArtifactService(storeInDirectory(directory))
    async function* content(): AsyncGenerator<Uint8Array> {
      const piece = new Uint8Array(MiB)
      for (let at = 0; at < 192; at++) yield piece
    }
    await artifacts.save('large', content())
    collectGarbage()
    const before = process.memoryUsage().arrayBuffers
    const { data } = await artifacts.load('large')
    collectGarbage()
    const growth = (process.memoryUsage().arrayBuffers - before) / MiB
    expect(data.byteLength).toBe(192 * MiB)
    expect(growth).toBeLessThan(192 + 100)
  } finally {
    rmSync(directory, { recursive: true })
  }
})
